import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { resolver } from "../../src/core/dns"
import { emailIdHeader, localPartFor } from "../../src/core/mail-token"
import { events } from "../../src/events/tables"
import { FEEDBACK } from "../fixtures/reports/arf"
import { STANDARD_DSNS } from "../fixtures/reports/dsn-standard"
import { TEXT_DSNS } from "../fixtures/reports/dsn-text"
import { deliverAll } from "../harness/delivery"
import { HOST, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()

const service = await sharedService()
const { secrets, workers } = service.parts
// Nothing here depends on the verdicts, so nothing waits for DNS.
const dns = resolver({ servers: ["127.0.0.1:9"], try_ms: 1 })
const server = await inboundServer(service, { verdicts: { workers, dns, host: HOST, dns_ms: 1 } })
afterAll(() => server[Symbol.asyncDispose]())

const DSNS = [...STANDARD_DSNS, ...TEXT_DSNS]

/** One email for each report, by the name of the report. */
const ids = new Map<string, string>()
let project: TestProject

beforeAll(async () => {
  project = await service.project()
  for (const { name, recipients } of DSNS) {
    const [to, ...cc] = recipients.map(({ email }) => email)
    const { body } = await project.post("/v1/emails", mail({ to, cc }))
    ids.set(name, body.id)
  }
  for (const { name } of FEEDBACK) {
    const { body } = await project.post("/v1/emails", mail({ to: "ann@example.com" }))
    ids.set(name, body.id)
  }
  await deliverAll(service, (email) => ({ ...SENT, address: email }))
})

const SENT = {
  status: "sent" as const,
  reason: null,
  bounce_subtype: null,
  code: null,
  reply: { smtp_code: 250, enhanced_code: "2.0.0", response: "ok", mx: null, tls: null },
}

const emailOf = (name: string) => ids.get(name) ?? ""

/** What is told of an email after it was sent: the event's type, its recipient and its subtype. */
async function toldOf(id: string) {
  const rows = await service.store.read
    .select()
    .from(events)
    .where(eq(events.subject_id, id))
    .orderBy(events.id)
  const later = rows.filter(({ type }) => type !== "email.queued" && type !== "email.sent")
  return later.map(({ type, data }) => {
    const { recipient_email, bounce_subtype } = data as Record<string, unknown>
    return { type, recipient_email, ...(type === "email.bounced" && { bounce_subtype }) }
  })
}

const EVENTS = {
  failed: "email.bounced",
  delayed: "email.soft_bounced",
  delivered: "email.delivered",
} as const

describe("through port 25 an email is settled by a report of", () => {
  test.each(DSNS.map((one) => [one.name, one] as const))(
    "%s",
    async (name, { raw, recipients }) => {
      const id = emailOf(name)
      const to = `${localPartFor(secrets, "b", id)}@${HOST}`
      const [row] = await server.receive({ from: "", to, raw: Buffer.from(raw) })
      expect(row).toMatchObject({ kind: "bounce", replied_to_message_id: id, status: "processed" })
      const wanted = recipients.flatMap(({ email, action, subtype }) => {
        const type = EVENTS[action as keyof typeof EVENTS]
        const failed = action === "failed" && { bounce_subtype: subtype }
        return type === undefined ? [] : [{ type, recipient_email: email, ...failed }]
      })
      expect(await toldOf(id)).toEqual(wanted)
    },
  )

  test.each(FEEDBACK.map((one) => [one.name, one] as const))(
    "%s",
    async (name, { raw, kind, envelope_from }) => {
      const id = emailOf(name)
      const marked = raw.replace(
        /^X-Svc-Email-Id: .*$/m,
        `X-Svc-Email-Id: ${emailIdHeader(secrets, id)}`,
      )
      const to = `complaints@${HOST}`
      const [row] = await server.receive({ from: envelope_from, to, raw: Buffer.from(marked) })
      expect(row?.kind).toBe(kind)
      const complained = { type: "email.complained", recipient_email: "ann@example.com" }
      expect(await toldOf(id)).toEqual(kind === "complaint" ? [complained] : [])
    },
  )
})

test("the same reports with a wrong token change nothing", async () => {
  const other = await service.project() // where Ann's address is not suppressed
  const { body } = await other.post("/v1/emails", mail({ to: "ann@example.com" }))
  await deliverAll(service, (email) => ({ ...SENT, address: email }))
  const local = localPartFor(secrets, "b", body.id)
  const wrong = local.replace(/.$/, local.endsWith("a") ? "b" : "a")
  const refusal = await server.offer({ from: "", to: `${wrong}@${HOST}`, raw: DSNS[0]?.raw ?? "" })
  expect(refusal).toStartWith("550")
  for (const { raw } of FEEDBACK) {
    const forged = raw.replace(/^X-Svc-Email-Id: .*$/m, `X-Svc-Email-Id: ${body.id}`)
    await server.receive({ to: `complaints@${HOST}`, raw: Buffer.from(forged) })
  }
  expect(await toldOf(body.id)).toEqual([])
})
