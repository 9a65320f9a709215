import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { emailIdHeader, localPartFor } from "../../src/core/mail-token"
import { inboundProcess } from "../../src/inbound/arrived-mail"
import { jobs } from "../../src/jobs/tables"
import { PRIORITIES } from "../../src/jobs/work-item"
import { movableClock } from "../harness/clock"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, idsIn, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { SmtpDialogue } from "../harness/smtp-dialogue"
import { reportOf } from "./forged-reports"

quietLog()

const clock = movableClock()
const service = await sharedService()
const { store, parts } = service
const KB = 1024
const server = await inboundServer(service, { bytes_per_hour: () => KB * KB })
afterAll(() => server[Symbol.asyncDispose]())

const project = await service.project()
const domain = await addReceivingDomain(store, project)
const { body } = await project.post("/v1/emails", mail())
const returnPath = `${localPartFor(parts.secrets, "b", body.id)}@${HOST}`

const sized = (kilobytes: number) =>
  `Subject: much\n\n${`${"x".repeat(62)}\n`.repeat(kilobytes * 16)}`
const REFUSED =
  /4\.2\.2 rate_limit_exceeded: 127\.0\.0\.1 may store 1 MB an hour here.* Try again in \d+ min \(req_/

const FLOODED = `postmaster@${HOST}`
const complaint = (value: string) => reportOf("complaint", { returned: `X-Svc-Email-Id: ${value}` })
const proven = () => complaint(emailIdHeader(parts.secrets, body.id))

/** A stranger stores as much as it may, to an address of the instance. Answers with all replies. */
const flood = async () => {
  const replies: string[] = []
  for (const kilobytes of [500, 12, 0]) {
    do replies.push(await server.offer({ to: FLOODED, raw: sized(kilobytes) }))
    while (replies.at(-1)?.startsWith("2."))
  }
  return replies
}

beforeEach(() => {
  clock.freeze()
  clock.advance({ seconds: 3600 * ++hours })
})
let hours = 0

test("beyond its share an address hears 452 4.2.2 and when to come again, and then it may", async () => {
  const replies = await flood()
  for (const reply of replies.slice(0, 2)) expect(reply).toMatch(/^2\.0\.0 /)
  expect(replies[2]).toMatch(REFUSED)
  clock.advance({ seconds: 3600 })
  expect(await server.offer({ to: FLOODED, raw: sized(240) })).toMatch(/^2\.0\.0 /)
})

test("what does not fit is refused before its bytes come, where the client declares them", async () => {
  await flood()
  using dialogue = await SmtpDialogue.open(server.server.port)
  await dialogue.say("EHLO elsewhere.test")
  expect(await dialogue.say("MAIL FROM:<ann@elsewhere.test> SIZE=200000")).toStartWith("250")
  expect(await dialogue.say(`RCPT TO:<a@${domain}>`)).toMatch(REFUSED)
  expect(await dialogue.say(`RCPT TO:<${returnPath}>`)).toStartWith("250")
  await dialogue.talk("RSET", "MAIL FROM:<ann@elsewhere.test> SIZE=2000000")
  expect(await dialogue.say(`RCPT TO:<${FLOODED}>`)).toMatch(REFUSED)
})

test("a refused mail, or one that could not be stored, takes nothing of the share", async () => {
  const broken = {
    ...parts.inbound_blobs,
    put: () => Promise.reject(Object.assign(new Error("full"), { code: "ENOSPC" })),
  }
  let blobs = broken as typeof parts.inbound_blobs
  const put: typeof blobs.put = (...given) => blobs.put(...given)
  await using it = await inboundServer(service, {
    bytes_per_hour: () => KB * KB,
    inbound_blobs: { ...parts.inbound_blobs, put },
  })
  for (let at = 0; at < 6; at++)
    expect(await it.offer({ to: FLOODED, raw: sized(240) })).toMatch(/^4\.3\.1/)
  blobs = parts.inbound_blobs
  expect(await it.offer({ to: FLOODED, raw: sized(1500) })).toMatch(REFUSED)
  expect(await it.offer({ to: FLOODED, raw: sized(900) })).toMatch(/^2\.0\.0 /)
})

test("each recipient counts for its rows", async () => {
  const to = Array.from({ length: 90 }, (_, at) => `a${at}@${domain}`)
  const replies: string[] = []
  for (let at = 0; at < 7; at++) replies.push(await server.offer({ to, raw: "Subject: tiny\n\n" }))
  expect(replies.filter((reply) => reply.startsWith("2."))).toHaveLength(5)
  expect(replies.at(-1)).toMatch(REFUSED)
})

describe("beside a stranger that has used its share up", () => {
  test.each([
    ["a bounce", () => ({ from: "", to: returnPath, raw: reportOf("bounce", { returned: "" }) })],
    [
      "a complaint to an address that everybody knows",
      () => ({ from: "", to: `complaints@${HOST}`, raw: proven() }),
    ],
    [
      "a complaint to the address of a domain",
      () => ({ from: "", to: `abuse@${domain}`, raw: proven() }),
    ],
  ])("%s gets in from the same address, and is read before all others", async (_, given) => {
    const flooded = await flood()
    const ids = idsIn(await server.offer(given()))
    const own = await priorityOf(ids)
    expect([own, await priorityOf(idsIn(flooded[0] ?? ""))]).toEqual([
      PRIORITIES.normal,
      PRIORITIES.bulk,
    ])
  })

  test("a complaint about a made-up message is refused behind DATA", async () => {
    await flood()
    const forged = emailIdHeader(parts.secrets, body.id).replace(/.$/, (last) =>
      last === "a" ? "b" : "a",
    )
    expect(await server.offer({ to: `complaints@${HOST}`, raw: complaint(forged) })).toMatch(
      REFUSED,
    )
  })

  test("mail from another address gets in", async () => {
    await flood()
    using dialogue = await SmtpDialogue.open(server.server.port, { local: "127.0.0.2" })
    await dialogue.talk(
      "EHLO elsewhere.test",
      "MAIL FROM:<ann@elsewhere.test>",
      `RCPT TO:<${FLOODED}>`,
      "DATA",
    )
    expect(await dialogue.say("Subject: hello\r\n\r\nText\r\n.")).toStartWith("250")
  })
})

async function priorityOf(ids: string[]): Promise<number | undefined> {
  const rows = await store.read.select().from(jobs).where(eq(jobs.name, inboundProcess.name))
  return rows.find(({ payload }) => (payload as { ids: string[] }).ids[0] === ids[0])?.priority
}
