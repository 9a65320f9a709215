import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { isoFrom, millis } from "../../src/core/time"
import { inboundContents, inboundEmails } from "../../src/inbound/tables"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { RAW, received } from "./received"

const service = await sharedService()

describe("a received mail", () => {
  test("is shown whole, with what the contract names", async () => {
    const project = await service.project()
    const row = await received(service, project, {
      mailbox_hash: "42",
      replied_to_message_id: NOBODY,
      thread_id: NOBODY,
      kind: "reply",
      parsed: { reply_to_metadata: { order: "1042" }, references: ["<a@b.test>"] },
      bodies: { text_body: "Hi\n\n> old", html_body: "<p>Hi</p>", stripped_text: "Hi" },
      files: [{ content: "Ding", filename: "Bericht für Ann.txt" }],
    })
    const { status, body } = await project.get(`/v1/inbound-emails/${row.id}`)
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      id: row.id,
      project_id: project.project_id,
      rfc_message_id: "<1@elsewhere.test>",
      from: { email: "ann@elsewhere.test", name: "Ann" },
      to_email: "support@in.example.test",
      to: [{ email: "Support@in.example.test", name: "Support" }],
      envelope: { from: "ann@elsewhere.test", to: ["support@in.example.test"] },
      domain: "in.example.test",
      text_body: "Hi\n\n> old",
      html_body: "<p>Hi</p>",
      stripped_text: "Hi",
      headers: { subject: ["A question"] },
      references: ["<a@b.test>"],
      replied_to_message_id: NOBODY,
      reply_to_metadata: { order: "1042" },
      mailbox_hash: "42",
      thread_id: NOBODY,
      kind: "reply",
      spf_verdict: "pass",
      dkim_verdict: "none",
      verified: true,
      spam: { score: 0, flagged: false, rules: [] },
      status: "processed",
      parse_error: false,
      truncated: false,
      size: RAW.length,
    })
    expect(body.data.attachments).toEqual([
      {
        id: "0",
        filename: "Bericht für Ann.txt",
        content_type: "text/plain",
        size: 4,
        content_id: null,
        disposition: "attachment",
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ])
  })

  test("that is not processed yet has a status that says so", async () => {
    const project = await service.project()
    const pending = { status: "received", verified: null, spf_verdict: null } as const
    const { id } = await received(service, project, pending)
    await service.store.tx(async (tx) => {
      await tx.update(inboundEmails).set({ parsed: null }).where(eq(inboundEmails.id, id))
      await tx.delete(inboundContents).where(eq(inboundContents.inbound_id, id))
    })
    const { data } = (await project.get(`/v1/inbound-emails/${id}`)).body
    expect(data).toMatchObject({ status: "received", spf_verdict: null, text_body: null, to: [] })
  })

  test("is as it came in at raw, until it is no longer stored", async () => {
    const project = await service.project()
    const { id } = await received(service, project)
    const { status, headers, text } = await project.get(`/v1/inbound-emails/${id}/raw`)
    expect([status, text]).toEqual([200, RAW])
    expect(headers.get("content-type")).toBe("message/rfc822")
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    const lost = await received(service, project, { raw_sha256: "0".repeat(64) })
    const gone = await project.get(`/v1/inbound-emails/${lost.id}/raw`)
    expect(refusal(gone)).toEqual([404, "not_found"])
  })

  test("is found neither by another project nor by a text that is no id", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const { id } = await received(service, one, { files: [{ content: "x" }] })
    for (const other of [id, NOBODY, "x", "..%2F..%2Fetc", "%00", "wait%20"]) {
      const path = `/v1/inbound-emails/${other}`
      for (const rest of ["", "/raw", "/attachments/0"]) {
        expect(refusal(await two.get(`${path}${rest}`))).toEqual([404, "not_found"])
      }
      for (const verb of ["reply", "forward", "redeliver"]) {
        const answer = await two.post(`${path}/${verb}`, { text: "x", to: "a@b.test" })
        expect(refusal(answer)).toEqual([404, "not_found"])
      }
      expect(refusal(await two.call("DELETE", path))).toEqual([404, "not_found"])
    }
    expect((await one.get(`/v1/inbound-emails/${id}`)).status).toBe(200)
  })

  test("is deleted, and its files are fetched no more", async () => {
    const project = await service.project()
    const { id } = await received(service, project, { files: [{ content: "x" }] })
    const path = `/v1/inbound-emails/${id}`
    const { url } = (await project.get(`${path}/attachments/0`)).body.data
    expect((await service.anybody.get(new URL(url).pathname)).status).toBe(200)
    const deleted = await project.call("DELETE", path)
    expect([deleted.status, deleted.body.data]).toEqual([200, { id, deleted: true }])
    expect(refusal(await project.get(path))).toEqual([404, "not_found"])
    expect(refusal(await project.call("DELETE", path))).toEqual([404, "not_found"])
    expect(refusal(await service.anybody.get(new URL(url).pathname))).toEqual([404, "not_found"])
    expect((await project.get("/v1/inbound-emails")).body.meta.total).toBe(0)
  })
})

test.each<[string, string[]]>([
  ["reads", ["inbound:read"]],
  ["reads", ["email:read"]],
])("%s with the scope %p, and changes nothing", async (_, scopes) => {
  const project = await service.project()
  const { id } = await received(service, project)
  const { key } = await project.addKey({ scopes })
  const asked = (method: string, path: string, body?: unknown) =>
    project.call(method, `/v1/inbound-emails${path}`, { headers: { "x-api-key": key }, body })
  expect((await asked("GET", "")).status).toBe(200)
  expect((await asked("GET", `/${id}`)).status).toBe(200)
  expect(refusal(await asked("DELETE", `/${id}`))).toEqual([403, "forbidden"])
  expect(refusal(await asked("POST", `/${id}/reply`, { text: "x" }))).toEqual([403, "forbidden"])
})

describe("the list", () => {
  test("has no bodies, is the newest first, and goes page by page and by cursor", async () => {
    const project = await service.project()
    for (const subject of ["one", "two", "three"]) await received(service, project, { subject })
    const first = (await project.get("/v1/inbound-emails?per_page=2")).body
    expect(first.meta).toMatchObject({ total: 3, total_pages: 2, has_more: true })
    for (const name of ["text_body", "html_body", "stripped_text"]) {
      expect(first.data[0]).not.toHaveProperty(name)
    }
    const cursor = first.meta.next_cursor
    const rest = (await project.get(`/v1/inbound-emails?per_page=2&cursor=${cursor}`)).body
    const subjects = [...first.data, ...rest.data].map((one: { subject: string }) => one.subject)
    expect(subjects).toEqual(["three", "two", "one"])
  })

  test("is filtered by recipient, sender, kind, thread and time", async () => {
    const project = await service.project()
    const thread_id = newId()
    const day = 86_400_000
    const old = isoFrom(millis() - 3 * day)
    await received(service, project, { to_email: "a@in.example.test", kind: "bounce", thread_id })
    await received(service, project, { from_email: "ben@elsewhere.test", created_at: old })
    await received(service, project)
    const count = async (query: string) =>
      (await project.get(`/v1/inbound-emails?${query}`)).body.meta.total
    const since = encodeURIComponent(isoFrom(millis() - day))
    expect(await count("to=A@in.example.test")).toBe(1)
    expect(await count("from=Ben%20<ben@ELSEWHERE.test>")).toBe(1)
    expect(await count("kind=bounce")).toBe(1)
    expect(await count("kind=dmarc_report")).toBe(0)
    expect(await count(`thread_id=${thread_id}`)).toBe(1)
    expect(await count("thread_id=x")).toBe(0)
    expect(await count(`created_before=${since}`)).toBe(1)
    expect(await count(`created_after=${since}`)).toBe(2)
    expect(await count(`created_after=${since}&kind=new`)).toBe(1)
  })

  test.each(["kind=spam", "to=two", "from=a,b@c.test", "created_after=yesterday", "per_page=101"])(
    "%s is refused",
    async (query) => {
      const project = await service.project()
      const refused = await project.get(`/v1/inbound-emails?${query}`)
      expect([refused.status, complaints(refused)]).toEqual([422, [query.split("=")[0] ?? ""]])
    },
  )
})
