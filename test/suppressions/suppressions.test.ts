import { describe, expect, test } from "bun:test"
import { auditLog } from "../../src/audit-log/tables"
import { events } from "../../src/events/tables"
import { type NewSuppression, suppressAll } from "../../src/suppressions/suppressions"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const PATH = "/v1/suppressions"

const add = (project: TestProject, fields: object = { email: "ann@example.test" }) =>
  project.post(PATH, fields)

/** The events of the project's list, oldest first. */
async function told(project: TestProject) {
  const all = await service.store.read.select().from(events).orderBy(events.id)
  const ours = all.filter(({ project_id }) => project_id === project.project_id)
  return ours
    .filter(({ type }) => type.startsWith("suppression."))
    .map(({ type, data }) => ({ type, data }))
}

describe("a suppression", () => {
  test("is added, shown, listed and removed", async () => {
    const project = await service.project()
    const added = await add(project, { email: "Ann <ANN@Example.test>", note: "By telephone." })
    expect(added.status).toBe(201)
    const { data } = added.body
    expect(data).toEqual({
      id: expect.any(String),
      channel: "email",
      address: "ann@example.test",
      reason: "manual",
      origin: "api",
      scope: { type: "project", key: null },
      source_message_id: null,
      diagnostic: null,
      note: "By telephone.",
      expires_at: null,
      created_at: expect.any(String),
    })
    expect((await project.get(`${PATH}/${data.id}`)).body.data).toEqual(data)
    const list = (await project.get(PATH)).body
    expect([list.data, list.meta.total]).toEqual([[data], 1])
    expect((await project.get(`${PATH}/check?email=ANN@example.test`)).body.data).toEqual({
      address: "ann@example.test",
      suppressed: true,
      suppression: data,
    })
    const removed = await project.call("DELETE", `${PATH}/${data.id}`)
    expect(removed.body.data).toEqual({ id: data.id, deleted: true })
    expect(refusal(await project.get(`${PATH}/${data.id}`))).toEqual([404, "not_found"])
    expect(refusal(await project.call("DELETE", `${PATH}/${data.id}`))).toEqual([404, "not_found"])
    const after = (await project.get(PATH)).body
    expect([after.data, after.meta.total]).toEqual([[], 0])
    const asked = await project.get(`${PATH}/check?email=ann@example.test`)
    expect(asked.body.data).toMatchObject({ suppressed: false, suppression: null })
  })

  test("tells of itself, and of its end", async () => {
    const project = await service.project()
    const { id } = (await add(project)).body.data
    await project.call("DELETE", `${PATH}/${id}`)
    const data = {
      ...{ id, channel: "email", address: "ann@example.test", reason: "manual", origin: "api" },
      timestamp: expect.any(String),
    }
    expect(await told(project)).toEqual([
      { type: "suppression.created", data },
      { type: "suppression.deleted", data },
    ])
  })

  test("leaves a trace in the audit log when it is removed", async () => {
    const project = await service.project()
    const { id } = (await add(project)).body.data
    await project.call("DELETE", `${PATH}/${id}`)
    const audit = await service.store.read.select().from(auditLog)
    const [entry] = audit.filter(({ target_id }) => target_id === id)
    expect(entry).toMatchObject({
      action: "suppression.deleted",
      target_type: "suppression",
      actor: { type: "key" },
      before: { address: "ann@example.test", reason: "manual", scope: "project" },
    })
  })

  test("of an address that has one is a conflict", async () => {
    const project = await service.project()
    const { id } = (await add(project)).body.data
    const again = await add(project, { email: "ANN@example.TEST" })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "exists", id })
  })

  test("of two requests at once is made once", async () => {
    const project = await service.project()
    const all = await Promise.all(Array.from({ length: 8 }, () => add(project)))
    expect(all.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
    expect((await project.get(PATH)).body.meta.total).toBe(1)
  })

  test("may be of a phone number", async () => {
    const project = await service.project()
    const added = await add(project, { phone: "+4915112345678", reason: "unsubscribe" })
    expect(added.body.data).toMatchObject({ channel: "sms", address: "+4915112345678" })
    const asked = await project.get(`${PATH}/check?phone=%2B4915112345678`)
    expect(asked.body.data.suppressed).toBe(true)
    const mail = await project.get(`${PATH}/check?email=a@b.test`)
    expect(mail.body.data.suppressed).toBe(false)
  })

  test("with the same Idempotency-Key is made once", async () => {
    const project = await service.project()
    const headers = { "idempotency-key": "once" }
    const body = { email: "ann@example.test" }
    const first = await project.call("POST", PATH, { body, headers })
    const second = await project.call("POST", PATH, { body, headers })
    expect(second.body.data).toEqual(first.body.data)
    expect(second.status).toBe(201)
  })

  test("is the project's own", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const { id } = (await add(one)).body.data
    for (const other of [id, NOBODY, "x"]) {
      expect(refusal(await two.get(`${PATH}/${other}`))).toEqual([404, "not_found"])
      expect(refusal(await two.call("DELETE", `${PATH}/${other}`))).toEqual([404, "not_found"])
    }
    const asked = await two.get(`${PATH}/check?email=ann@example.test`)
    expect(asked.body.data.suppressed).toBe(false)
    const removal = { emails: ["ann@example.test"] }
    const removed = await two.post(`${PATH}/bulk-remove`, removal)
    expect(removed.body.data).toEqual({ removed: 0, not_found: ["ann@example.test"] })
    expect((await two.get(PATH)).body.data).toEqual([])
    expect((await one.get(PATH)).body.meta.total).toBe(1)
  })

  test.each<[object, number, string]>([
    [{}, 422, "email"],
    [{ email: "ann" }, 422, "email"],
    [{ email: "ann@example.test\r\nBcc: x@y.test" }, 422, "email"],
    [{ email: "a@b.test, c@d.test" }, 422, "email"],
    [{ email: "" }, 422, "email"],
    [{ phone: "015112345678" }, 422, "phone"],
    [{ phone: "+0151" }, 422, "phone"],
    [{ email: "a@b.test", phone: "+4915112345678" }, 422, "phone"],
    [{ email: "a@b.test", reason: "boredom" }, 422, "reason"],
    [{ email: "a@b.test", note: "two\nlines" }, 422, "note"],
    [{ email: "a@b.test", note: "x".repeat(501) }, 422, "note"],
    [{ email: "a@b.test", expires_at: "2020-01-01T00:00:00Z" }, 422, "expires_at"],
    [{ email: "a@b.test", expires_at: "tomorrow" }, 422, "expires_at"],
    [{ email: "a@b.test", expires_at: "2030-01-01T00:00:00" }, 422, "expires_at"],
    [{ email: 7 }, 422, "email"],
  ])("of %j is refused", async (fields, status, field) => {
    const refused = await add(await service.project(), fields)
    expect([refused.status, complaints(refused)]).toEqual([status, [field]])
  })

  test("needs its scopes", async () => {
    const reader = await service.project({ scopes: ["suppressions:read"] })
    expect(refusal(await add(reader))).toEqual([403, "forbidden"])
    expect((await reader.get(PATH)).status).toBe(200)
    const mail = await service.project({ scopes: ["email:read"] })
    expect(refusal(await mail.get(PATH))).toEqual([403, "forbidden"])
    expect((await mail.get(`${PATH}/check?email=a@b.test`)).status).toBe(200)
  })
})

describe("the list", () => {
  test("is filtered by reason, channel, origin and address, with totals", async () => {
    const project = await service.project()
    await add(project, { email: "a@x.test", reason: "bounce" })
    await add(project, { email: "b@x.test", reason: "complaint" })
    await add(project, { phone: "+4915112345678", reason: "bounce" })
    await project.post(`${PATH}/bulk`, { emails: [{ email: "c@x.test", reason: "bounce" }] })
    const ask = async (query: string) => {
      const { data, meta } = (await project.get(`${PATH}?${query}`)).body
      return [data.map(({ address }: { address: string }) => address), meta.total]
    }
    expect(await ask("")).toEqual([["c@x.test", "+4915112345678", "b@x.test", "a@x.test"], 4])
    expect(await ask("reason=bounce")).toEqual([["c@x.test", "+4915112345678", "a@x.test"], 3])
    expect(await ask("channel=sms")).toEqual([["+4915112345678"], 1])
    expect(await ask("origin=import")).toEqual([["c@x.test"], 1])
    expect(await ask("address=B@X.test")).toEqual([["b@x.test"], 1])
    expect(await ask("address=%2B4915112345678")).toEqual([["+4915112345678"], 1])
    expect(await ask("reason=bounce&channel=email&origin=api")).toEqual([["a@x.test"], 1])
    expect(refusal(await project.get(`${PATH}?reason=x`))).toEqual([422, "validation_error"])
  })

  test("is filtered by a part of the reply, and by its time", async () => {
    const project = await service.project()
    const said = (address: string, diagnostic: string | null) => ({
      ...{ channel: "email", address, reason: "bounce", origin: "event" },
      diagnostic,
    })
    const WHOLE = "550 Ящик 📪 e_\\'".padEnd(1_000, "x")
    const replies = ["550 5.2.0 no OFR_506", "552 Too many recipients", "550 100%", null, WHOLE]
    const list = replies.map((reply, at) => said(`${at}@x.test`, reply) as NewSuppression)
    await service.store.tx((tx) => suppressAll(tx, project.project_id, list))
    const ask = async (query: string) =>
      (await project.get(`${PATH}?${query}`)).body.data.map(
        (row: { address: string }) => row.address,
      )
    expect(await ask("diagnostic=ofr_5")).toEqual(["0@x.test"])
    expect(await ask("diagnostic=55&reason=bounce")).toEqual([
      "4@x.test",
      "2@x.test",
      "1@x.test",
      "0@x.test",
    ])
    expect(await ask("diagnostic=0%25")).toEqual(["2@x.test"])
    expect(await ask(`diagnostic=${encodeURIComponent("Ящик 📪 E_\\'")}`)).toEqual(["4@x.test"])
    expect(await ask(`diagnostic=${encodeURIComponent("Ящик 📪 EX\\'")}`)).toEqual([])
    expect(await ask(`diagnostic=${encodeURIComponent(WHOLE)}`)).toEqual(["4@x.test"])
    expect(await ask("created_after=2020-01-01T00:00:00Z&origin=event")).toHaveLength(5)
    expect(await ask("created_after=2999-01-01T00:00:00Z&diagnostic=55")).toEqual([])
    expect((await project.get(`${PATH}?created_after=yesterday`)).status).toBe(422)
    expect((await project.get(`${PATH}?diagnostic=`)).status).toBe(422)
  })

  test("is walked by cursor while it changes", async () => {
    const project = await service.project()
    for (let at = 0; at < 5; at++) await add(project, { email: `${at}@x.test` })
    const first = (await project.get(`${PATH}?per_page=2`)).body
    await add(project, { email: "late@x.test" })
    const cursor = first.meta.next_cursor
    const second = (await project.get(`${PATH}?per_page=2&cursor=${cursor}`)).body
    const addresses = [...first.data, ...second.data].map(({ address }) => address)
    expect(addresses).toEqual(["4@x.test", "3@x.test", "2@x.test", "1@x.test"])
  })
})

describe("a list of addresses", () => {
  test("is added; what is there stays, and what is bad is named", async () => {
    const project = await service.project()
    await add(project, { email: "old@x.test", note: "first" })
    const emails = [
      { email: "a@x.test", reason: "unsubscribe" },
      { email: "OLD@x.test", reason: "bounce" },
      { email: "nobody", reason: "bounce" },
      { email: "A@X.TEST", reason: "bounce" },
      { email: "b@x.test", reason: "spite" },
      "c@x.test",
      { email: "d@x.test", note: "from the shop" },
      { reason: "bounce" },
      null,
    ]
    const { status, body } = await project.post(`${PATH}/bulk`, { emails })
    expect(status).toBe(200)
    const { added, existing, failed } = body.data
    expect([added, existing]).toEqual([2, 2])
    expect(
      failed.map((one: { index: number; error: { code: string } }) => [one.index, one.error.code]),
    ).toEqual([
      [2, "invalid_email"],
      [4, "validation_error"],
      [5, "validation_error"],
      [7, "missing_required_field"],
      [8, "validation_error"],
    ])
    const { data } = (await project.get(`${PATH}?address=old@x.test`)).body
    expect(data[0]).toMatchObject({ reason: "manual", note: "first", origin: "api" })
    expect(await told(project)).toHaveLength(3)
  })

  test("is removed, each with its event and its entry in the audit log", async () => {
    const project = await service.project()
    const emails = Array.from({ length: 20 }, (_, at) => `${at}@x.test`)
    await project.post(`${PATH}/bulk`, { emails: emails.map((email) => ({ email })) })
    const removal = { emails: ["3@X.test", "4@x.test", "other@x.test", "no address"] }
    const { body } = await project.post(`${PATH}/bulk-remove`, removal)
    expect(body.data).toEqual({ removed: 2, not_found: ["other@x.test", "no address"] })
    const list = (await project.get(PATH)).body
    expect(list.meta.total).toBe(18)
    const gone = (await told(project)).filter(({ type }) => type === "suppression.deleted")
    expect(gone.map(({ data }) => data.address).sort()).toEqual(["3@x.test", "4@x.test"])
    const audit = await service.store.read.select().from(auditLog)
    const ours = audit.filter(({ project_id }) => project_id === project.project_id)
    expect(ours.filter(({ action }) => action === "suppression.deleted")).toHaveLength(2)
  })

  test("may have a thousand addresses, and no more", async () => {
    const project = await service.project()
    const some = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ email: `${at}@x.test`, reason: "bounce" }))
    const whole = await project.post(`${PATH}/bulk`, { emails: some(1000) })
    expect(whole.body.data).toEqual({ added: 1000, existing: 0, failed: [] })
    expect((await project.get(PATH)).body.meta.total).toBe(1000)
    const again = await project.post(`${PATH}/bulk`, { emails: some(1000) })
    expect(again.body.data).toEqual({ added: 0, existing: 1000, failed: [] })
    const more = await project.post(`${PATH}/bulk`, { emails: some(1001) })
    expect([more.status, complaints(more)]).toEqual([422, ["emails"]])
    const removal = { emails: some(1001).map(({ email }) => email) }
    expect(complaints(await project.post(`${PATH}/bulk-remove`, removal))).toEqual(["emails"])
    removal.emails.pop()
    const removed = await project.post(`${PATH}/bulk-remove`, removal)
    expect(removed.body.data).toEqual({ removed: 1000, not_found: [] })
    expect((await project.get(PATH)).body.meta.total).toBe(0)
  })

  test("may have a body of 8 MiB, and no more", async () => {
    const project = await service.project()
    const limit = 8_388_608
    const body = (bytes: number) => {
      const start = '{"emails":[{"email":"a@x.test"}],"filler":"'
      return `${start}${"x".repeat(bytes - start.length - 2)}"}`
    }
    const fits = await project.call("POST", `${PATH}/bulk`, { body: body(limit) })
    expect(fits.status).toBe(200)
    const over = await project.call("POST", `${PATH}/bulk`, { body: body(limit + 1) })
    expect(refusal(over)).toEqual([413, "payload_too_large"])
  })
})
