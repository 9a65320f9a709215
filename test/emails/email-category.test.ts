import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { simpleParser } from "mailparser"
import { unsubscribeLinks } from "../../src/consents/tables"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { PLACE, type TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { idsOf, testSubmission } from "../harness/submission"
import { domainKeys } from "./published-keys"
import { byMailauth } from "./verifiers"

const service = await sharedService({ domains: { targets: PLACE } })
const { store, parts } = service
const { login, submit } = testSubmission(service)
const KEYS = await domainKeys("acme.test")

const linksOf = async ({ project_id }: TestProject) =>
  store.read.select().from(unsubscribeLinks).where(eq(unsubscribeLinks.project_id, project_id))

async function left(project: TestProject, fields: Record<string, unknown> = {}) {
  const { body } = await project.post("/v1/emails", mail(fields))
  return { id: body.id as string, raw: await rawOf(body.id) }
}

async function rawOf(id: string) {
  const handed = await deliverAll(service)
  return Buffer.from(handed.find(({ message_id }) => message_id === id)?.raw ?? "")
}

const fieldsIn = (raw: Buffer) => {
  const head = raw.subarray(0, raw.indexOf("\r\n\r\n")).toString()
  return head
    .replaceAll(/\r\n[ \t]+/g, " ")
    .split("\r\n")
    .filter((line) => /^list-/i.test(line))
}

const tokenIn = (raw: Buffer) =>
  /<http:\/\/belfry\.test\/u\/([a-z2-7]{26})>/.exec(fieldsIn(raw).join())?.[1] ?? ""

const both = (token: string) => [
  `List-Unsubscribe: <http://belfry.test/u/${token}>, <mailto:u+${token}@mx.belfry.test>`,
  "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
]

test("an email with a category shows it, and carries the links of its recipient once", async () => {
  const project = await service.project()
  const { id, raw } = await left(project, { category: "news" })
  const { body } = await project.get(`/v1/emails/${id}`)
  expect(body.data.category).toBe("news")
  const { body: list } = await project.get("/v1/emails")
  expect(list.data[0].category).toBe("news")

  const token = tokenIn(raw)
  expect(fieldsIn(raw)).toEqual(both(token))
  const scope = { type: "category" as const, key: "news" }
  const about = { project_id: project.project_id, address: "ann@example.test", scope }
  expect(token).toBe(parts.rules.unsubscribe.tokenFor(about))
  expect(await linksOf(project)).toMatchObject([{ address: "ann@example.test", scope_key: "news" }])
  const parsed = await simpleParser(raw)
  expect(parsed.headers.get("list")).toMatchObject({ unsubscribe: { url: expect.any(String) } })
})

test("an email without a category carries none, and its own ones stay", async () => {
  const project = await service.project()
  const { id, raw } = await left(project)
  expect(fieldsIn(raw)).toEqual([])
  expect((await project.get(`/v1/emails/${id}`)).body.data.category).toBeNull()
  const own = { "List-Unsubscribe": "<https://example.test/out>" }
  expect(fieldsIn((await left(project, { headers: own })).raw)).toEqual([
    "List-Unsubscribe: <https://example.test/out>",
  ])
  expect(await linksOf(project)).toEqual([])
})

test("both fields are signed by DKIM (RFC 8058, 4)", async () => {
  const project = await service.project()
  await KEYS.publish(service, project.project_id)
  const { raw } = await left(project, { from: "ann@acme.test", category: "news" })
  const signatures = raw
    .toString()
    .replaceAll(/\r\n[ \t]+/g, "")
    .match(/^DKIM-Signature:.*/gm)
  expect(signatures).toHaveLength(2)
  for (const one of signatures ?? []) {
    const [, names = ""] = /;h=([^;]*);/i.exec(one.replaceAll(" ", "")) ?? []
    expect(names.toLowerCase().split(":")).toEqual(
      expect.arrayContaining(["list-unsubscribe", "list-unsubscribe-post"]),
    )
  }
  const whole = await byMailauth(raw, "bounce@acme.test", KEYS.records)
  expect(whole.dkim).toEqual(["pass", "pass"])
  for (const name of ["List-Unsubscribe: <http", "List-Unsubscribe-Post: List"]) {
    const forged = Buffer.from(raw.toString().replace(name, `${name}x`))
    const { dkim } = await byMailauth(forged, "bounce@acme.test", KEYS.records)
    expect(dkim).not.toContain("pass")
  }
})

test("in a batch each item has its own, and a bad category is told with its index", async () => {
  const project = await service.project()
  const messages = [
    mail({ category: "news" }),
    mail({ category: "Not a slug" }),
    mail({ category: "offers", to: "ben@example.test" }),
    mail({ category: "news" }),
  ]
  const { body } = await project.post("/v1/emails/batch", { messages })
  expect(body.data).toMatchObject({ succeeded: 3, failed: 1 })
  expect(body.data.results[1].error).toMatchObject({ code: "validation_error" })
  const found = (await linksOf(project)).map(({ address, scope_key }) => `${address} ${scope_key}`)
  expect(found.sort()).toEqual(["ann@example.test news", "ben@example.test offers"])
})

test("an email sent again to another address has the links of that address, in its bodies too", async () => {
  const project = await service.project()
  const scope = { type: "category" as const, key: "news" }
  const of = (address: string) =>
    parts.rules.unsubscribe.tokenFor({ project_id: project.project_id, address, scope })
  const bodiesWith = (token: string) => ({
    html: `<a href="http://belfry.test/u/${token}">out</a> <a href="http://belfry.test/p/${token}">`,
    text: `http://belfry.test/u/${token}`,
  })
  const bodies = bodiesWith(of("ann@example.test"))
  const { id, raw } = await left(project, { category: "news", ...bodies })
  const contentOf = async (id: string) => (await project.get(`/v1/emails/${id}/content`)).body.data
  const again = async (more: object = {}) => {
    const { body } = await project.post(`/v1/emails/${id}/resend`, more)
    const { html, text } = await contentOf(body.id)
    return { token: tokenIn(await rawOf(body.id)), bodies: { html, text } }
  }
  const ben = of("ben@example.test")
  expect(await again({ to: "Ben@example.test" })).toEqual({ token: ben, bodies: bodiesWith(ben) })
  expect(await again()).toEqual({ token: tokenIn(raw), bodies })
  const addresses = (await linksOf(project)).map(({ address }) => address)
  expect(addresses.sort()).toEqual(["ann@example.test", "ben@example.test"])
})

describe("a mail submitted with X-Svc-Category", () => {
  const letter = (fields: string) =>
    `From: bell@example.test\nTo: ann@example.test\nSubject: Ding\n${fields}\nDong.\n`

  async function submitted(fields: string, to = ["ann@example.test"]) {
    const project = await service.project()
    const ids = idsOf(await submit(await login(project.key), { raw: letter(fields), to }))
    const handed = await deliverAll(service)
    const raws = ids.map((id) => handed.find(({ message_id }) => message_id === id)?.raw ?? "")
    return { project, ids, raws: raws.map((raw) => Buffer.from(raw)) }
  }

  test("carries the link of each of its recipients", async () => {
    const to = ["ann@example.test", "ben@example.test"]
    const { project, ids, raws } = await submitted("X-Svc-Category: news\n", to)
    for (const raw of raws) expect(fieldsIn(raw)).toEqual(both(tokenIn(raw)))
    expect(new Set(raws.map(tokenIn)).size).toBe(2)
    for (const id of ids) {
      expect((await project.get(`/v1/emails/${id}`)).body.data.category).toBe("news")
    }
  })

  test("loses its own fields of this kind, and keeps them without a category", async () => {
    const own =
      "List-Unsubscribe: <https://example.test/out>\nlist-unsubscribe-post: List-Unsubscribe=One-Click\nList-Id: <news.example.test>\n"
    const [raw = Buffer.from("")] = (await submitted(`${own}X-Svc-Category: news\n`)).raws
    expect(fieldsIn(raw)).toEqual([...both(tokenIn(raw)), "List-Id: <news.example.test>"])
    const [plain = Buffer.from("")] = (await submitted(own)).raws
    expect(fieldsIn(plain)).toEqual(own.trim().split("\n"))
  })
})
