import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { asc, eq, ne } from "drizzle-orm"
import { emailIdHeader, localPartFor } from "../../src/core/mail-token"
import { events } from "../../src/events/tables"
import { messages } from "../../src/messages/tables"
import { suppressions } from "../../src/suppressions/tables"
import { deliverAll } from "../harness/delivery"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { SmtpDialogue } from "../harness/smtp-dialogue"
import { reportOf } from "./forged-reports"

quietLog()

const service = await sharedService()
const { store, parts } = service
const { secrets } = parts
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

const project = await service.project()
const domain = await addReceivingDomain(store, project)
let id = ""
let other_id = ""
let unsubscribe = ""

beforeAll(async () => {
  const news = mail({ category: "news" })
  const made = [await project.post("/v1/emails", news), await project.post("/v1/emails", mail())]
  await deliverAll(service)
  ;[id = "", other_id = ""] = made.map(({ body }) => body.id)
  const [message] = await store.read.select().from(messages).where(eq(messages.id, id))
  unsubscribe = `u+${message?.envelope?.unsubscribe}`
})

/** Everything that a report could have changed. A mail that names a message may join its thread. */
async function stateOf() {
  const all = await store.read.select().from(messages).orderBy(asc(messages.id))
  const rows = all.map(({ thread_id: _, ...row }) => row)
  const told = await store.read
    .select({ type: events.type, subject_id: events.subject_id })
    .from(events)
    .where(eq(events.subject_id, id))
  // Mail to the address of an unsubscribe link unsubscribes, whatever it says.
  const other = ne(suppressions.reason, "unsubscribe")
  return { rows, told, suppressed: await store.read.select().from(suppressions).where(other) }
}

const KINDS = ["b", "r"] as const
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

/** Each character of the token replaced by others: with one bit changed, and with the neighbours. */
function forgeriesOf(local: string): string[] {
  const [kind = "", token = ""] = local.split("+")
  const forged: string[] = []
  for (let at = 0; at < token.length; at++) {
    const value = ALPHABET.indexOf(token[at] ?? "")
    for (const bit of [1, 2, 4, 8, 16]) {
      forged.push(`${kind}+${token.slice(0, at)}${ALPHABET[value ^ bit]}${token.slice(at + 1)}`)
    }
    forged.push(`${kind}+${token.slice(0, at)}${token.slice(at + 1)}`)
    forged.push(`${kind}+${token.slice(0, at)}a${token.slice(at)}`)
    forged.push(`${kind}+${token.slice(0, at)}1${token.slice(at + 1)}`)
  }
  return forged.filter((one) => one !== local)
}

/** The replies to many RCPT. A server ends a session after 100 refusals, so it takes several. */
async function answersTo(addresses: string[]): Promise<string[]> {
  const replies: string[] = []
  for (let from = 0; from < addresses.length; from += 90) {
    using it = await SmtpDialogue.open(server.server.port)
    await it.talk("EHLO elsewhere.test", "MAIL FROM:<>")
    for (const address of addresses.slice(from, from + 90)) {
      replies.push((await it.say(`RCPT TO:<${address}>`)).slice(0, 9))
    }
  }
  return replies
}

test.each(["b", "r", "u"] as const)(
  "a forged address %s+… is refused at RCPT, whatever character is wrong",
  async (kind) => {
    const local = kind === "u" ? unsubscribe : localPartFor(secrets, kind, id)
    expect(await answersTo([`${local}@${HOST}`])).toEqual(["250 2.1.5"])
    expect(await answersTo([`${local.toUpperCase()}@${HOST.toUpperCase()}`])).toEqual(["250 2.1.5"])
    const forged = forgeriesOf(local)
    expect(forged.length).toBeGreaterThan(200)
    const replies = await answersTo(forged.map((one) => `${one}@${HOST}`))
    expect(forged.filter((_, at) => replies[at] !== "550 5.7.1")).toEqual([])
  },
)

describe.each(KINDS)("a forged address %s+…", (kind) => {
  test("is none of another kind, another message, another secret or another host", async () => {
    const token = localPartFor(secrets, kind, id).slice(2)
    const [mac, other] = [token.slice(26), localPartFor(secrets, kind, other_id).slice(2)]
    const others = KINDS.filter((one) => one !== kind)
    const forged = [
      ...others.map((one) => `${one}+${token}@${HOST}`),
      `u+${token}@${HOST}`,
      `u+${token.slice(0, 26)}@${HOST}`,
      `${kind}+${unsubscribe.slice(2)}@${HOST}`,
      `${kind}+${other.slice(0, 25)}${token.slice(25)}@${HOST}`,
      `${kind}+${token.slice(0, 26)}${"a".repeat(16)}@${HOST}`,
      `${kind}+${mac}${token.slice(0, 26)}@${HOST}`,
      `${kind}-${token}@${HOST}`,
      `${kind}+${token}@sub.${HOST}`,
      `${kind}+${token}@elsewhere.test`,
      `x${kind}+${token}@${HOST}`,
    ]
    const replies = await answersTo(forged)
    expect(forged.filter((_, at) => !replies[at]?.startsWith("550 5."))).toEqual([])
  })
})

describe("forged reports change nothing", () => {
  const headerForgeries = () => {
    const value = emailIdHeader(secrets, id)
    return [...value].flatMap((one, at) =>
      /[0-9a-z]/.test(one)
        ? [`${value.slice(0, at)}${one === "b" ? "c" : "b"}${value.slice(at + 1)}`]
        : [],
    )
  }

  const complain = async (returned: string[]) => {
    const mails = returned.map((line) => reportOf("complaint", { returned: line }))
    const to = `complaints@${HOST}`
    const replies = await Promise.all(mails.map((raw) => server.offer({ from: "", to, raw })))
    expect(replies.filter((reply) => !reply.startsWith("2.0.0 "))).toEqual([])
    await server.work()
  }

  test("a complaint that names a message with any wrong character of its mark", async () => {
    const before = await stateOf()
    const forged = headerForgeries()
    expect(forged.length).toBeGreaterThan(45)
    await complain(forged.map((value) => `X-Svc-Email-Id: ${value}`))
    expect(await stateOf()).toEqual(before)
  })

  test("a complaint that returns a path with any wrong character", async () => {
    const before = await stateOf()
    const forged = forgeriesOf(localPartFor(secrets, "b", id)).filter((_, at) => at % 8 === 0)
    await complain(forged.map((local) => `Return-Path: <${local}@${HOST}>`))
    expect(await stateOf()).toEqual(before)
  })

  test("a bounce to any address that is not the path of the message, whatever it names", async () => {
    const before = await stateOf()
    const [message] = before.rows.filter((row) => row.id === id)
    const returned = [
      `Message-ID: ${message?.rfc_message_id}`,
      `X-Svc-Email-Id: ${emailIdHeader(secrets, id)}`,
      `Return-Path: <${localPartFor(secrets, "b", id)}@${HOST}>`,
    ].join("\n")
    const to = [
      ...[`bounces@${domain}`, `b+x@${domain}`, `postmaster@${HOST}`, `mailer-daemon@${domain}`],
      `${forgeriesOf(localPartFor(secrets, "b", id))[0]}@${domain}`,
      `${localPartFor(secrets, "r", id)}@${HOST}`,
      `${unsubscribe}@${HOST}`,
    ]
    for (const address of to) {
      const raw = reportOf("bounce", {
        returned,
        header: `In-Reply-To: ${message?.rfc_message_id}`,
      })
      expect([address, await server.offer({ from: "", to: address, raw })]).toEqual([
        address,
        expect.stringMatching(/^2\.0\.0 /),
      ])
    }
    await server.work()
    expect(await stateOf()).toEqual(before)
  })

  test("a bounce to the path of one message settles that one, whatever it names", async () => {
    const [before] = await store.read.select().from(messages).where(eq(messages.id, id))
    const returned = `Message-ID: ${before?.rfc_message_id}\nX-Svc-Email-Id: ${emailIdHeader(secrets, id)}`
    const raw = reportOf("bounce", { returned })
    const to = `${localPartFor(secrets, "b", other_id)}@${HOST}`
    expect(await server.offer({ from: "", to, raw })).toStartWith("2.0.0 ")
    await server.work()
    const [after] = await store.read.select().from(messages).where(eq(messages.id, id))
    expect(after).toEqual(before as never)
  })

  test("an answer that names a message tells no metadata of it", async () => {
    const fields = { to: "bob@example.test", metadata: { secret: "canary" } } // Ann's address bounced
    const { body } = await project.post("/v1/emails", mail(fields))
    await deliverAll(service)
    const [sent] = await store.read.select().from(messages).where(eq(messages.id, body.id))
    const raw = `From: eve@elsewhere.test\nIn-Reply-To: ${sent?.rfc_message_id}\nReferences: ${sent?.rfc_message_id}\nSubject: Re: x\n\nhi\n`
    const [row] = await server.receive({ to: `any@${domain}`, raw })
    expect(row?.replied_to_message_id).toBe(body.id)
    expect(JSON.stringify(row)).not.toContain("canary")
  })
})
