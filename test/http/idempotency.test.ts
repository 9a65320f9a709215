import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { createApp } from "../../src/app"
import * as idempotency from "../../src/http/idempotency"
import { idempotency as rows } from "../../src/http/tables"
import { SendBatcher } from "../../src/messages/accept"
import { client, type Reply, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const DAY_SECONDS = 86_400

const withKey = (key: string) => ({ "idempotency-key": key })
const isReplay = ({ headers }: Reply) => headers.get("idempotent-replayed") === "true"
const countOf = async (project: TestProject) => (await project.get("/v1/emails")).body.meta.total

describe("the second request with a key", () => {
  test("and the same body gets the first answer, under its own id", async () => {
    const project = await service.project()
    const first = await project.post("/v1/emails", mail(), withKey("one"))
    const second = await project.post("/v1/emails", mail(), withKey("one"))
    expect([first.status, second.status]).toEqual([201, 201])
    expect([isReplay(first), isReplay(second)]).toEqual([false, true])
    const { meta, ...answer } = second.body
    expect({ ...answer, meta: first.body.meta }).toEqual(first.body)
    expect(meta.request_id).toBe(second.headers.get("x-request-id"))
    expect(meta.request_id).not.toBe(first.body.meta.request_id)
    expect(await countOf(project)).toBe(1)
    const { data } = (await project.get(`/v1/emails/${first.body.id}`)).body
    expect(data.idempotency_key).toBe("one")
  })

  test("and the same body in another order and spacing gets it too", async () => {
    const project = await service.project()
    const { from, to, subject, text } = mail()
    const first = await project.post("/v1/emails", { from, to, subject, text }, withKey("k"))
    const reordered = JSON.stringify({ text, subject, to, from }, null, 4)
    const second = await project.post("/v1/emails", reordered, withKey("k"))
    expect([second.body.id, isReplay(second)]).toEqual([first.body.id, true])
  })

  test("and another body is 422", async () => {
    const project = await service.project()
    await project.post("/v1/emails", mail(), withKey("k"))
    for (const body of [mail({ subject: "Dong" }), {}, mail({ metadata: { a: 1 } })]) {
      const refused = await project.post("/v1/emails", body, withKey("k"))
      expect(refusal(refused)).toEqual([422, "validation_error"])
      expect(refused.body.error.details.reason).toBe("idempotency_key_reused")
    }
    expect(await countOf(project)).toBe(1)
  })

  test("while the first one runs is 409, and tells to come again", async () => {
    const project = await service.project()
    const [first, second] = await Promise.all([
      project.post("/v1/emails", mail(), withKey("k")),
      project.post("/v1/emails", mail(), withKey("k")),
    ])
    const [done, refused] = first?.status === 201 ? [first, second] : [second, first]
    expect(done?.status).toBe(201)
    expect(refused && refusal(refused)).toEqual([409, "conflict"])
    expect(refused?.body.error.details).toMatchObject({ reason: "in_progress" })
    expect(refused?.headers.get("retry-after")).toBe("1")
    expect(isReplay(await project.post("/v1/emails", mail(), withKey("k")))).toBe(true)
  })

  test("a day later is a new one", async () => {
    const project = await service.project()
    const first = await project.post("/v1/emails", mail(), withKey("k"))
    clock.advance({ seconds: DAY_SECONDS - 60 })
    expect(isReplay(await project.post("/v1/emails", mail(), withKey("k")))).toBe(true)
    clock.advance({ seconds: 60 })
    const later = await project.post("/v1/emails", mail({ subject: "Other" }), withKey("k"))
    expect([later.status, isReplay(later)]).toEqual([201, false])
    expect(later.body.id).not.toBe(first.body.id)
    const again = await project.post("/v1/emails", mail({ subject: "Other" }), withKey("k"))
    expect([again.body.id, isReplay(again)]).toEqual([later.body.id, true])
    expect(await countOf(project)).toBe(2)
  })
})

describe("a key", () => {
  test("of another project, path or method is another key", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const sent = await one.post("/v1/emails", mail(), withKey("k"))
    const foreign = await two.post("/v1/emails", mail(), withKey("k"))
    const resent = await one.post(`/v1/emails/${sent.body.id}/resend`, {}, withKey("k"))
    const batch = await one.post("/v1/emails/batch", [mail()], withKey("k"))
    expect([sent, foreign, resent, batch].map(isReplay)).toEqual([false, false, false, false])
    expect([foreign.status, resent.status, batch.status]).toEqual([201, 201, 200])
  })

  test.each(["", "with space", "ü", "x".repeat(256), "tab\t"])("may not be %j", async (key) => {
    const project = await service.project()
    // The client in between trims white space, and would not send some of these.
    const refused = await project.post("/v1/emails", mail(), { "idempotency-key": key })
    if (key === "tab\t") return expect(refused.status).toBe(201)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(refused.body.error.details.fields[0].path).toBe("Idempotency-Key")
  })

  test("may have 255 visible characters", async () => {
    const project = await service.project()
    const { status } = await project.post("/v1/emails", mail(), withKey("~!".repeat(127)))
    expect(status).toBe(201)
  })

  test("is not used up by a refusal", async () => {
    const project = await service.project()
    const bad = mail({ from: "bell@unverified.test" })
    expect((await project.post("/v1/emails", bad, withKey("k"))).status).toBe(400)
    expect((await project.post("/v1/emails", mail({ to: "" }), withKey("k"))).status).toBe(422)
    expect((await project.post("/v1/emails", mail(), withKey("k"))).status).toBe(201)
  })

  test("is ignored by reads", async () => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", mail())).body
    for (const _ of [1, 2]) {
      const { status, headers } = await project.post(`/v1/emails/${id}/events`, {}, withKey("k"))
      expect([status, headers.has("idempotent-replayed")]).toEqual([200, false])
    }
  })
})

test("a batch has one key", async () => {
  const project = await service.project()
  const batch = { messages: [mail(), mail({ to: "nobody" }), mail()] }
  const first = await project.post("/v1/emails/batch", batch, withKey("k"))
  const second = await project.post("/v1/emails/batch", batch, withKey("k"))
  expect(second.body).toEqual({ ...first.body, meta: second.body.meta })
  expect(isReplay(second)).toBe(true)
  expect(await countOf(project)).toBe(2)
})

test("a bare batch is replayed in its own form", async () => {
  const project = await service.project()
  const first = await project.post("/v1/emails/batch", [mail()], withKey("k"))
  const second = await project.post("/v1/emails/batch", [mail()], withKey("k"))
  const meta = { ...first.body.meta, request_id: second.body.meta.request_id }
  expect(second.body).toEqual({ ...first.body, meta })
})

test("a hundred at once make one message, on two nodes too", async () => {
  const project = await service.project()
  const { parts } = service
  const node = createApp({ ...parts, intake: new SendBatcher(parts.store) })
  const other = client(node as never, project.key)
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, at) =>
      (at % 2 ? other : project).post("/v1/emails", mail(), withKey("storm")),
    ),
  )
  expect([...new Set(answers.map(({ status }) => status))].sort()).toEqual([201, 409])
  const accepted = answers.filter(({ status }) => status === 201)
  expect(new Set(accepted.map(({ body }) => body.id)).size).toBe(1)
  expect(accepted.filter((answer) => !isReplay(answer))).toHaveLength(1)
  for (const { body } of answers.filter(({ status }) => status === 409)) {
    expect(body.error.details.reason).toBe("in_progress")
  }
  expect(await countOf(project)).toBe(1)
})

test("many keys at once make one message each", async () => {
  const project = await service.project()
  const keys = Array.from({ length: 40 }, (_, at) => `key-${at % 20}`)
  await Promise.all(keys.map((key) => project.post("/v1/emails", mail(), withKey(key))))
  expect(await countOf(project)).toBe(20)
})

test("the answer to a new API key is replayed, but the database cannot read it", async () => {
  const project = await service.project()
  const wanted = { name: "deploy", scopes: ["email:send"] }
  const first = await project.post("/v1/api-keys", wanted, withKey("k"))
  const second = await project.post("/v1/api-keys", wanted, withKey("k"))
  expect([first.status, second.status, isReplay(second)]).toEqual([201, 201, true])
  expect(second.body.data).toEqual(first.body.data)

  const { store } = service.parts
  const kept = await store.read.select().from(rows).where(eq(rows.project_id, project.project_id))
  expect(kept).toHaveLength(1)
  expect(JSON.stringify(kept)).not.toContain(first.body.data.key.slice(20))
})

test("what is older than a day is forgotten", async () => {
  const project = await service.project()
  await project.post("/v1/emails", mail(), withKey("old"))
  clock.advance({ seconds: DAY_SECONDS + 1 })
  await project.post("/v1/emails", mail(), withKey("new"))
  const { store } = service.parts
  while ((await idempotency.purge(store)) > 0);
  const kept = await store.read.select().from(rows).where(eq(rows.project_id, project.project_id))
  expect(kept.map(({ request }) => request.split(" ").at(-1))).toEqual(["new"])
})
