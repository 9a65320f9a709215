import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { explained, STAGES } from "../../src/emails/stages"
import type { MessageView } from "../../src/messages/message-list"
import { bounced, deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { endpoint } from "../webhooks/endpoints"

const service = await sharedService()

interface Step {
  at: string
  stage: string
  rule: string
  outcome: string
  detail: string
}

async function send(project: TestProject, change: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await project.post("/v1/emails", mail(change))
  expect(status).toBe(201)
  return body.id
}

async function explain(project: TestProject, id: string) {
  const { status, body } = await project.get(`/v1/emails/${id}/explain`)
  expect(status).toBe(200)
  const steps: Step[] = body.data.steps
  const of = (stage: string) => steps.filter((one) => one.stage === stage)
  return { ...(body.data as { email_id: string; verdict: string; summary: string }), steps, of }
}

describe("the explanation", () => {
  test("of an email that waits has every stage in order, and what it waits for", async () => {
    const project = await service.project()
    const id = await send(project)
    const { email_id, verdict, steps, of } = await explain(project, id)
    expect([email_id, verdict]).toEqual([id, "queued"])
    const stages = steps.map(({ stage }) => stage)
    expect(stages).toEqual(STAGES.filter((stage) => stages.includes(stage)))
    expect(STAGES.filter((stage) => !stages.includes(stage))).toEqual(["attempt"])
    expect(of("auth")).toMatchObject([{ rule: "api_key", outcome: "pass" }])
    expect(of("queue")).toMatchObject([{ rule: "queued", outcome: "wait" }])
    expect(of("provider")).toMatchObject([{ rule: "not_asked" }])
  })

  test("of a delivered email has the server's words and who was told", async () => {
    const project = await service.project()
    await endpoint(project, { events: ["email.delivered"] })
    const id = await send(project)
    await deliverAll(service)
    const { verdict, summary, of } = await explain(project, id)
    expect(verdict).toBe("delivered")
    expect(summary).toBe("The email to ann@example.test was delivered after 1 attempt.")
    const [attempt] = of("attempt")
    expect(attempt).toMatchObject({ rule: "delivered", outcome: "pass" })
    expect(attempt?.detail).toContain("The answer was: ")
    expect(of("outcome")).toMatchObject([{ rule: "delivered", outcome: "pass" }])
    expect(of("webhooks")).toMatchObject([{ rule: "pending", outcome: "wait" }])
    expect(of("webhooks")[0]?.detail).toContain("email.delivered to the webhook ")
  })

  test("of a bounced email says what the server refused", async () => {
    const project = await service.project()
    const id = await send(project)
    await deliverAll(service, bounced)
    const { verdict, summary, of } = await explain(project, id)
    expect([verdict, of("attempt")[0]?.outcome, of("outcome")[0]?.outcome]).toEqual([
      "bounced",
      "fail",
      "fail",
    ])
    expect(summary).toContain("ended bounced")
    expect(summary).toContain("The last answer was: ")
  })

  test("of a cancelled email says so", async () => {
    const project = await service.project()
    const id = await send(project)
    await project.post(`/v1/emails/${id}/cancel`)
    const { verdict, of } = await explain(project, id)
    expect([verdict, of("queue")[0]?.rule]).toEqual(["failed", "cancelled"])
  })

  test("of a scheduled email names its time", async () => {
    const project = await service.project()
    const scheduled_at = new Date(Date.now() + 3_600_000).toISOString()
    const { summary, of } = await explain(project, await send(project, { scheduled_at }))
    expect(of("queue")[0]).toMatchObject({ rule: "scheduled", outcome: "wait" })
    expect(summary).toContain(scheduled_at)
  })

  test("of a foreign email is a 404", async () => {
    const [project, other] = [await service.project(), await service.project()]
    const id = await send(project)
    expect((await other.get(`/v1/emails/${id}/explain`)).status).toBe(404)
    expect((await project.get(`/v1/emails/${newId()}/explain`)).status).toBe(404)
  })
})

describe("stages by what is known", () => {
  const project_id = newId()
  const AT = "2026-11-22T10:00:00.000Z"

  const message = (change: Partial<MessageView>) =>
    ({
      id: newId(),
      project_id,
      channel: "email",
      status: "queued",
      status_reason: null,
      address: "ann@example.test",
      recipients: [
        {
          email: "ann@example.test",
          name: null,
          kind: "to",
          status: "queued",
          status_reason: null,
        },
      ],
      sender_domain: "example.test",
      envelope: { from: { email: "a@example.test", name: null }, reply_to: [], attachments: [] },
      source: "api",
      api_key_id: null,
      idempotency_key: null,
      sandbox: false,
      fan_out_id: null,
      units: null,
      error: null,
      scheduled_at: null,
      next_attempt_at: null,
      created_at: AT,
      updated_at: AT,
      ...change,
    }) as MessageView

  const unseen = { unique: 0, first_at: null, last_at: null }
  const none = { total: 0, human: 0, machine: 0, ...unseen }

  const of = (change: Partial<MessageView>, hits = { opens: none, clicks: none }) =>
    explained({
      message: message(change),
      key_name: null,
      attempts: [],
      deliveries: [],
      hits,
    })

  const stepsOf = (change: Partial<MessageView>, stage: string) =>
    of(change).steps.flatMap((one) => (one.stage === stage ? [[one.rule, one.outcome]] : []))

  const envelope = { from: { email: "a@b.test", name: null }, reply_to: [], attachments: [] }

  test.each<[string, string, Partial<MessageView>, [string, string]]>([
    ["a session", "auth", {}, ["session", "pass"]],
    ["a publish", "source", { fan_out_id: newId() }, ["publish", "pass"]],
    ["the sandbox", "quota", { sandbox: true }, ["sandbox", "none"]],
    [
      "a template",
      "template",
      { envelope: { ...envelope, template: { id: newId(), name: "welcome", version: 3 } } },
      ["template", "pass"],
    ],
    [
      "a category",
      "preference",
      { envelope: { ...envelope, category: "news" } },
      ["category", "pass"],
    ],
    [
      "a copy that was left out",
      "suppression",
      {
        envelope: {
          ...envelope,
          left_out: [{ email: "c@b.test", name: null, kind: "cc", text: "x" }],
        },
      },
      ["copy_left_out", "pass"],
    ],
    [
      "a preference",
      "preference",
      { status: "failed", status_reason: "preference" },
      ["preference", "fail"],
    ],
    [
      "tracking",
      "tracking",
      { envelope: { ...envelope, track: { opens: true, clicks: false } } },
      ["tracked", "pass"],
    ],
    [
      "complaints",
      "reputation",
      { status_reason: "held_by_complaints" },
      ["held_by_complaints", "wait"],
    ],
    [
      "a lost domain",
      "sender",
      {
        error: {
          code: "domain_not_verified",
          message: "gone",
          smtp_code: null,
          enhanced_code: null,
        },
      },
      ["domain_not_verified", "wait"],
    ],
  ])("%s shows in the stage %s", (_, stage, change, wanted) => {
    expect(stepsOf(change, stage)).toEqual([wanted])
  })

  test("what is being sent waits for nothing", () => {
    const change = { status: "sending" as const }
    expect(stepsOf(change, "queue")).toEqual([["claimed", "pass"]])
    expect(of(change).summary).toBe("The email to ann@example.test is being sent.")
  })

  test("what ended without an attempt does not wait for its turn", () => {
    const change = { status: "failed" as const, status_reason: "domain_not_verified" }
    expect(stepsOf(change, "queue")).toEqual([["ended", "none"]])
  })

  test("the words of a server end before what follows them", () => {
    const change = { status_reason: "451 Try later", next_attempt_at: AT }
    const [queue] = of(change).steps.filter(({ stage }) => stage === "queue")
    expect(queue?.detail).toBe(`451 Try later. It is tried again at ${AT}.`)
    expect(of(change).summary).toContain(`waits: 451 Try later. The next attempt is at ${AT}.`)
  })

  test("what ended without a word of the provider has no empty reason", () => {
    const error = { code: "provider_error", message: "", smtp_code: null, enhanced_code: null }
    const { summary, steps } = of({ status: "undelivered", status_reason: "", error })
    expect(summary).toBe("The email to ann@example.test ended undelivered.")
    expect(steps.find(({ stage }) => stage === "outcome")?.detail).toBe("It is undelivered.")
  })

  test("hits of machines show, though they make no events", () => {
    const track = { opens: true, clicks: true }
    const opens = { ...none, total: 3, human: 1, machine: 2 }
    const { steps } = of({ envelope: { ...envelope, track } }, { opens, clicks: none })
    const [tracking] = steps.filter(({ stage }) => stage === "tracking")
    expect(tracking?.detail).toBe(
      "Its openings and clicks are tracked. Opened: 3 in all, 1 by people, 2 by machines. Clicked: never.",
    )
  })

  test("segments are counted where a message counts its own units", () => {
    const [quota] = of({ channel: "sms", units: 3 }).steps.filter(({ stage }) => stage === "quota")
    expect(quota?.detail).toBe("It used 3 segments of the month's quota.")
  })

  test("the provider tells of failover within an attempt, and what is waited for", () => {
    const tried = {
      message_id: newId(),
      attempt: 1,
      provider: "b",
      started_at: AT,
      outcome: "sent",
    }
    const words = { duration_ms: 5, mx: null, tls: null, smtp_code: null }
    const transcript = ["* a: connection: refused", "* trying the next provider: b"]
    const attempt = { ...tried, ...words, enhanced_code: null, response: null, transcript }
    const facts = { message: message({}), key_name: null, deliveries: [] }
    const { steps } = explained({
      ...{ ...facts, attempts: [attempt], hits: { opens: none, clicks: none } },
      refusal: "a refuses our login",
    })
    expect(steps.filter(({ stage }) => stage === "provider")).toMatchObject([
      { rule: "failover", detail: expect.stringContaining("Attempt 1 tried b, because") },
      { rule: "waits", outcome: "wait", detail: "a refuses our login" },
    ])
  })

  test("a recipient that was suppressed later fails", () => {
    const recipients = [
      {
        email: "ann@example.test",
        name: null,
        kind: "to" as const,
        status: "failed" as const,
        status_reason: "suppressed_recipient",
      },
    ]
    expect(stepsOf({ status: "failed", recipients }, "suppression")).toEqual([
      ["suppressed_recipient", "fail"],
    ])
  })
})
