import { expect, test } from "bun:test"
import { simpleParser } from "mailparser"
import { localPartFor, readEmailIdHeader, readLocalPart } from "../../src/core/mail-token"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { NO_NAMES, PLACE, type TestProject, testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const HOST = "mx.belfry.test"
const service = await sharedService({
  rules: { replyAddress: (id) => `${localFor(id)}@${HOST}` },
})
const { secrets } = service.parts

function localFor(id: string) {
  return localPartFor(secrets, "r", id)
}

const tracking = async (more: object = {}) => {
  const project = await service.project()
  await project.call("PATCH", "/v1/settings", { body: { reply_tracking: true, ...more } })
  return project
}

async function left(project: TestProject, more: Record<string, unknown> = {}) {
  const { body } = await project.post("/v1/emails", mail(more))
  const [handed] = await deliverAll(service)
  const parsed = await simpleParser(Buffer.from(handed?.raw ?? ""))
  const replies = parsed.replyTo?.value.map(({ address }) => address) ?? []
  return { id: body.id as string, replies, headers: parsed.headers }
}

test("every email that leaves names itself in a header that only we can write", async () => {
  const project = await service.project()
  const own = { "x-svc-email-id": "somebody else", "X-Kind": "bell" }
  const { id, headers } = await left(project, { headers: own })
  expect(readEmailIdHeader(secrets, String(headers.get("x-svc-email-id")))).toBe(id)
  expect(headers.get("x-kind")).toBe("bell")
})

test("with reply_tracking answers go to an address that names the email", async () => {
  const project = await tracking()
  const { id, replies } = await left(project)
  const [address = ""] = replies
  expect(address.endsWith(`@${HOST}`)).toBe(true)
  expect(readLocalPart(secrets, address.split("@")[0] ?? "")).toEqual({ kind: "r", message_id: id })
  const { body } = await project.get(`/v1/emails/${id}`)
  expect(body.data.reply_to).toEqual([{ email: address, name: null }])
})

test("it stands in for default_reply_to, and an email's own reply_to stays", async () => {
  const project = await tracking({ default_reply_to: "help@example.test" })
  expect((await left(project)).replies[0]).toStartWith("r+")
  expect((await left(project, { reply_to: "me@example.test" })).replies).toEqual([
    "me@example.test",
  ])
})

test("without the setting nothing is added", async () => {
  expect((await left(await service.project())).replies).toEqual([])
})

test.each([
  ["mx.belfry.test", "r+"],
  ["box", undefined],
  ["[127.0.0.1]", undefined],
])("at a server with the host %p mail leaves in every case", async (host, start) => {
  const targets = { ...PLACE, host }
  await using one = await testService({ domains: { ...NO_NAMES, targets } })
  const project = await one.project()
  await project.call("PATCH", "/v1/settings", { body: { reply_tracking: true } })
  await project.post("/v1/emails", mail())
  const [handed] = await deliverAll(one)
  const { subject, replyTo } = await simpleParser(Buffer.from(handed?.raw ?? ""))
  expect(subject).toBe(mail().subject)
  expect(replyTo?.value[0]?.address?.slice(0, 2)).toBe(start)
})
