import { afterAll, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { extractCode } from "../../src/lib/code-extraction"
import { readDsn } from "../../src/lib/dsn"
import { bounceSubtype } from "../../src/lib/dsn-recipient"
import { readSubmitted } from "../../src/smtp/submitted-mail"
import { seen } from "../fixtures/reports/mime"
import { addReceivingDomain } from "../harness/inbound-rows"
import { inboundServer } from "../harness/inbound-server"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

const file = (name: string) => readFileSync(join(import.meta.dir, "../fixtures/odd-mail", name))

/** As the file is, except that other servers send CRLF. */
const wire = (name: string) =>
  Buffer.from(file(name).toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1")

/** What the API shows of a mail that came on port 25. */
async function received(raw: Uint8Array) {
  const project = await service.project()
  const domain = await addReceivingDomain(service.store, project)
  const [row] = await server.receive({ to: `x@${domain}`, raw })
  return (await project.get(`/v1/inbound-emails/${row?.id}`)).body.data
}

test.each([
  ["c59.eml", { html_body: expect.stringMatching(/^<p>x{8900,}\s*$/) }],
  ["e01.eml", { subject: "Test" }],
  ["s03.eml", { stripped_text: "My reply message" }],
  ["s04.eml", { stripped_text: "Greetings back" }],
  ["s32.eml", { stripped_text: "Please ship.\n\n1. one\n2. two\n\nBye" }],
  ["q06.eml", { kind: "dmarc_report" }],
])("port 25 takes %p and shows it right", async (name, right) => {
  const mail = await received(wire(name))
  expect(mail).toMatchObject({ ...right, parse_error: false })
})

test("port 25 takes a bare LF as the end of a line", async () => {
  const raw = file("e03.eml")
  expect(raw.toString()).toMatch(/[^\r]\n/)
  const { text_body } = await received(raw)
  expect(text_body).toBe("line1\nline2\n")
})

test("a code is found with its separators left out", async () => {
  const { subject, text_body: text } = await received(wire("o5.eml"))
  const alone = { subject: "Your code", text: file("o15.txt").toString(), html: null }
  for (const mail of [{ subject, text, html: null }, alone])
    expect(extractCode(mail)).toEqual({ code: "K7PX9QTM" })
})

test("a mailbox that a provider does not have is NoEmail", () => {
  const [recipient] = readDsn(seen(wire("d04.eml").toString(), ""))?.recipients ?? []
  expect(recipient && bounceSubtype(recipient)).toBe("NoEmail")
})

test("8-bit mail that was submitted without MIME fields leaves with them", () => {
  const id = "019a0000-0000-7000-8000-000000000001"
  const at = { id, host: "mx.belfry.test", received_at: "2026-11-29T10:00:00.000Z" }
  const mail = readSubmitted({ raw: wire("p01.eml"), smtputf8: false, ...at })
  if ("refused" in mail) throw new Error(mail.refused)
  const sent = Buffer.from(mail.raw).toString()
  expect(sent).toContain("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n")
  expect(sent).toContain("\r\n\r\nGrüße 日本\r\n")
})
