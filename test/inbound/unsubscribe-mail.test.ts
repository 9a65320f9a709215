import { afterAll, expect, test } from "bun:test"
import { simpleParser } from "mailparser"
import { deliverAll } from "../harness/delivery"
import { HOST, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { PLACE, type TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { chainOf, unsubscribedIn } from "../harness/unsubscribed"

quietLog()

const service = await sharedService({ domains: { targets: PLACE } })
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

/** The address in the header of a mail that left, as a mail program reads it. */
async function addressOf(project: TestProject, category = "news") {
  const { body } = await project.post("/v1/emails", mail({ category }))
  const handed = await deliverAll(service)
  const raw = handed.find(({ message_id }) => message_id === body.id)?.raw ?? ""
  const { headers } = await simpleParser(Buffer.from(raw))
  const list = headers.get("list") as { unsubscribe?: { mail?: string } } | undefined
  return list?.unsubscribe?.mail ?? ""
}

const ENDED = {
  ended: ["ann@example.test unsubscribe page category news"],
  consents: ["ann@example.test news withdrawn one_click"],
}

test("mail to the address of the header ends the category, over port 25, whatever it says", async () => {
  const project = await service.project()
  const to = await addressOf(project)
  expect(to).toMatch(new RegExp(`^u\\+[a-z2-7]{26}@${RegExp.escape(HOST)}$`))
  const [row] = await server.receive({
    from: "somebody.else@elsewhere.test",
    to: to.toUpperCase(),
    raw: "From: somebody.else@elsewhere.test\nSubject: keep me subscribed\n\nPlease do not.\n",
  })
  expect(row).toMatchObject({ status: "processed", project_id: project.project_id })
  const { events, ...rest } = await unsubscribedIn(service, project)
  expect(rest).toEqual(ENDED)
  expect(events).toHaveLength(2)
})

test.each([
  ["nothing at all", ""],
  ["no header", "\n\n"],
  ["an automatic answer", "Auto-Submitted: auto-replied\nSubject: away\n\nback soon\n"],
  ["markup", "Content-Type: text/html\n\n<form><input name=List-Unsubscribe></form>\n"],
])("so does mail with %s, from the null sender too", async (_, raw) => {
  const project = await service.project()
  await server.receive({ from: "", to: await addressOf(project), raw })
  expect((await unsubscribedIn(service, project)).ended).toEqual(ENDED.ended)
})

test("a second mail changes nothing more, nor does its job when it runs twice", async () => {
  const project = await service.project()
  const to = await addressOf(project)
  const raw = "Subject: unsubscribe\n\n"
  const first = await server.receive({ to, raw })
  await server.receive({ to: [to, to.toUpperCase()], raw })
  await server.handler.run({ ids: first.map(({ id }) => id) }, {} as never)
  const { events, ...rest } = await unsubscribedIn(service, project)
  expect(rest).toEqual(ENDED)
  expect(events).toHaveLength(2)
})

test("a mail to the addresses of two projects ends one category in each", async () => {
  const [one, two] = [await service.project(), await service.project()]
  const to = [await addressOf(one), await addressOf(two)]
  await addressOf(two, "offers")
  await server.receive({ to, raw: "Subject: unsubscribe\n\n" })
  for (const project of [one, two]) {
    expect((await unsubscribedIn(service, project)).ended).toEqual(ENDED.ended)
  }
})

test("the record shows the mail that was its proof, and no IP address", async () => {
  const project = await service.project()
  const [row] = await server.receive({ to: await addressOf(project), raw: "\n" })
  const [consent] = await chainOf(service, project.project_id)
  expect(consent).toMatchObject({ proof: `mail ${row?.id}`, ip_hash: null, channel: "email" })
})
