import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { type MailboxChaos, projects } from "../../src/identity/tables"
import { mishapOf } from "../../src/mailbox/simulator"
import { complaints, refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { openTestMailbox } from "./open-mailbox"

describe("at mailbox.test,", () => {
  test.each([
    ["bounce@mailbox.test", "bounced", "550 5.1.1", "NoEmail"],
    ["bounce+tag@mailbox.test", "bounced", "550 5.1.1", "NoEmail"],
    ["BOUNCE@Mailbox.Test", "bounced", "550 5.1.1", "NoEmail"],
    ["reject@mailbox.test", "bounced", "550 5.7.1", "PolicyRejected"],
    ["softbounce@mailbox.test", "retry", "451 4.2.0", null],
  ])("%s is %s with %s", async (to, status, words, bounce_subtype) => {
    await using it = await openTestMailbox()

    const outcome = await it.send(newId(), to)
    expect(outcome).toMatchObject({ status, bounce_subtype, address: to })
    expect(outcome.reason).toStartWith(words)
    expect((await it.list()).rows).toEqual([])
  })

  test.each(["ann@mailbox.test", "bounce@example.test", "debounce@mailbox.test"])(
    "%s is delivered",
    async (to) => {
      await using it = await openTestMailbox()
      expect(await it.send(newId(), to)).toMatchObject({ status: "delivered", reason: null })
    },
  )

  test("softbounce@ never gets better", async () => {
    await using it = await openTestMailbox()
    const message_id = await it.addMessage()
    for (let attempt = 1; attempt <= 4; attempt++) {
      expect((await it.send(message_id, "softbounce@mailbox.test")).status).toBe("retry")
    }
  })

  test("defer@ puts each message off once, after it was sent", async () => {
    await using it = await openTestMailbox()
    const [one, two] = [newId(), newId()]

    const first = await it.send(one, "defer@mailbox.test")
    expect(first).toMatchObject({ status: "retry", reply: { smtp_code: 451 } })
    expect(await it.send(two, "defer@mailbox.test")).toMatchObject({ status: "retry" })
    expect(await it.send(one, "defer@mailbox.test")).toMatchObject({ status: "delivered" })
    expect(await it.send(two, "defer@mailbox.test")).toMatchObject({ status: "delivered" })
    expect((await it.list()).total).toBe(2)
  })

  test("defer@ as a copy puts off nobody else", async () => {
    await using it = await openTestMailbox()
    const id = newId()
    const outcome = await it.send(
      id,
      "ann@mailbox.test",
      "defer@mailbox.test",
      "defer+2@mailbox.test",
    )
    expect([outcome, ...outcome.others]).toMatchObject([
      { address: "ann@mailbox.test", status: "delivered" },
      { address: "defer@mailbox.test", status: "retry", reply: { smtp_code: 451 } },
      { address: "defer+2@mailbox.test", status: "retry" },
    ])
    expect(await it.send(id, "defer@mailbox.test")).toMatchObject({ status: "delivered" })
  })

  test("slow@ is delivered in the end, and holds nobody else up", async () => {
    await using it = await openTestMailbox()

    const order: string[] = []
    const slow = it.send(newId(), "slow@mailbox.test").then((outcome) => {
      order.push("slow")
      return outcome
    })
    await it.send(newId(), "ann@mailbox.test")
    order.push("quick")
    expect(await slow).toMatchObject({ status: "delivered" })
    expect(order).toHaveLength(2)
  })

  test("complain@ takes the mail and complains about our message", async () => {
    await using it = await openTestMailbox()
    const message_id = await it.addMessage()

    expect(await it.send(message_id, "complain@mailbox.test")).toMatchObject({
      status: "delivered",
    })
    expect(it.complaints).toEqual([message_id])
    await it.send(newId(), "complain@mailbox.test")
    expect(it.complaints).toHaveLength(1)
  })
})

const service = await sharedService()

const CALM: MailboxChaos = { bounce_rate: 0, defer_rate: 0, delay_ms: 0, refuse_rate: 0 }

type TestMailbox = Awaited<ReturnType<typeof openTestMailbox>>

const disturb = ({ store, project_id }: TestMailbox, chaos: Partial<MailboxChaos>) =>
  store.tx((tx) =>
    tx
      .update(projects)
      .set({ settings: { mailbox_chaos: { ...CALM, ...chaos } } })
      .where(eq(projects.id, project_id)),
  )

describe("in a project with chaos,", () => {
  test.each<[string, Partial<MailboxChaos>, object]>([
    ["bounces", { bounce_rate: 1 }, { status: "bounced", reply: { enhanced_code: "5.1.1" } }],
    ["is refused", { refuse_rate: 1 }, { status: "bounced", reply: { enhanced_code: "5.7.1" } }],
  ])("mail to every address %s", async (_, chaos, expected) => {
    await using it = await openTestMailbox()
    await disturb(it, chaos)
    const message_id = await it.addMessage()
    expect(await it.send(message_id, "ann@example.test")).toMatchObject(expected)
    expect(await it.send(newId(), "ann@example.test")).toMatchObject(expected) // of a stranger
    expect((await it.list()).total).toBe(0)
  })

  test("mail is deferred once, then delivered", async () => {
    await using it = await openTestMailbox()
    await disturb(it, { defer_rate: 1 })
    const message_id = await it.addMessage()
    const statuses = async () => (await it.send(message_id, "ann@example.test")).status
    expect([await statuses(), await statuses()]).toEqual(["retry", "delivered"])
  })

  test("each recipient meets something else, and the same at every attempt", async () => {
    await using it = await openTestMailbox()
    await disturb(it, { bounce_rate: 0.5 })
    const message_id = await it.addMessage()
    const to = Array.from({ length: 20 }, (_, at) => `ann${at}@example.test`)
    const outcomes = async () => {
      const { others, ...first } = await it.send(message_id, ...to)
      return [first, ...others].map(({ status }) => status)
    }
    const first = await outcomes()
    expect(new Set(first)).toEqual(new Set(["bounced", "delivered"]))
    expect(await outcomes()).toEqual(first)
  })

  test("addresses with an outcome of their own keep it", async () => {
    await using it = await openTestMailbox()
    await disturb(it, { refuse_rate: 1 })
    const message_id = await it.addMessage()
    const outcome = await it.send(message_id, "bounce@mailbox.test")
    expect(outcome.reply.enhanced_code).toBe("5.1.1")
  })

  test("answers wait, those that refuse too", async () => {
    await using it = await openTestMailbox()
    const took = async (chaos: Partial<MailboxChaos>) => {
      await disturb(it, chaos)
      const begun = performance.now()
      await it.send(await it.addMessage(), "ann@example.test")
      return performance.now() - begun
    }
    expect(await took({ delay_ms: 300 })).toBeGreaterThanOrEqual(299)
    expect(await took({ delay_ms: 300, bounce_rate: 1 })).toBeGreaterThanOrEqual(299)
  })

  test("mails that wait hold no more deliveries than they may", async () => {
    await using it = await openTestMailbox({ most_waiting: 2 })
    await disturb(it, { delay_ms: 60_000 })
    const answered: string[] = []
    const ids = await Promise.all(Array.from({ length: 5 }, () => it.addMessage()))
    const mails = ids.map((id) =>
      it.send(id, "ann@example.test").then(({ status }) => answered.push(status)),
    )
    for (const mail of mails) mail.catch(() => undefined) // the server stops before they are answered
    const { promise, resolve } = Promise.withResolvers<void>()
    for (const mail of mails) mail.then((count) => count === 3 && resolve(), resolve)
    await promise
    expect(answered).toEqual(["delivered", "delivered", "delivered"])
  })

  test("another project is left in peace", async () => {
    await using it = await openTestMailbox()
    const message_id = await it.addMessage()
    const other = await it.addProject()
    await disturb({ ...it, project_id: other }, { bounce_rate: 1 })
    expect((await it.send(message_id, "ann@example.test")).status).toBe("delivered")
  })
})

test("what goes wrong is spread as the rates say", () => {
  const chaos = { bounce_rate: 0.3, defer_rate: 0.2, refuse_rate: 0.1, delay_ms: 0 }
  const counts = new Map<string | undefined, number>()
  for (let at = 0; at < 10_000; at++) {
    const met = mishapOf(chaos, `message ${at}`, "ann@example.test")
    counts.set(met, (counts.get(met) ?? 0) + 1)
  }
  const near = (name: string | undefined, share: number) =>
    expect(Math.abs((counts.get(name) ?? 0) / 10_000 - share)).toBeLessThan(0.03)
  near("bounce", 0.3)
  near("defer", 0.2)
  near("reject", 0.1)
  near(undefined, 0.4)
})

describe("the route", () => {
  const URL = "/v1/mailbox/chaos"

  test("shows nothing wrong, then what was set, and ends it with an empty body", async () => {
    const [project, other] = [await service.project(), await service.project()]
    expect((await project.get(URL)).body.data).toEqual(CALM)
    const wanted = { bounce_rate: 0.3, defer_rate: 0.7, delay_ms: 60_000 }
    const set = await project.call("PUT", URL, { body: wanted })
    expect(set.body.data).toEqual({ ...CALM, ...wanted })
    expect((await project.get(URL)).body.data).toEqual({ ...CALM, ...wanted })
    expect((await other.get(URL)).body.data).toEqual(CALM)
    expect((await project.get("/v1/settings")).body.data).not.toHaveProperty("mailbox_chaos")
    expect((await project.call("PUT", URL, { body: {} })).body.data).toEqual(CALM)
  })

  test.each([
    { bounce_rate: 1.1 },
    { bounce_rate: -0.1 },
    { bounce_rate: "0.1" },
    { bounce_rate: 0.5, defer_rate: 0.4, refuse_rate: 0.2 },
    { delay_ms: 60_001 },
    { delay_ms: 1.5 },
  ])("refuses %j", async (body) => {
    const project = await service.project()
    const refused = await project.call("PUT", URL, { body })
    expect([refused.status, complaints(refused)]).toEqual([422, [Object.keys(body)[0] ?? ""]])
  })

  test("is changed with the right to send", async () => {
    const project = await service.project({ scopes: ["email:read"] })
    expect((await project.get(URL)).status).toBe(200)
    const refused = await project.call("PUT", URL, { body: {} })
    expect(refusal(refused)).toEqual([403, "forbidden"])
  })
})
