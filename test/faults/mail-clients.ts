import { expect } from "bun:test"
import type { Belfry } from "../harness/binary"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"

export type MailPort = "submission" | "inbound"

/** The name of the mail servers of these tests; its postmaster takes mail without any domain. */
export const MAIL_HOST = "mx.belfry.test"

export const mailSettings = {
  BELFRY_SMTP_HOST: MAIL_HOST,
  BELFRY_SMTP_INBOUND_PER_IP: "100",
  BELFRY_SMTP_INBOUND_PER_MINUTE: "100000",
  BELFRY_SMTP_SUBMISSION_PER_IP: "100",
}

/** A client that may say MAIL next: to submit it has TLS and a login. */
export async function openClient(server: Belfry, port: MailPort): Promise<SmtpDialogue> {
  const it = await SmtpDialogue.open(server.smtp[port] ?? 0)
  await it.say("EHLO client.test")
  if (port === "inbound") return it
  await it.starttls()
  await it.talk("EHLO client.test", plainLogin("svc", server.api_key))
  return it
}

const ENVELOPE: Record<MailPort, string[]> = {
  submission: ["MAIL FROM:<me@example.test>", "RCPT TO:<ann@example.test>"],
  inbound: ["MAIL FROM:<ann@elsewhere.test>", `RCPT TO:<postmaster@${MAIL_HOST}>`],
}

export const messageId = (key: string) => `<${key}@client.test>`

/** Of a mail with so many bytes of text; its last line says that it is whole. */
export function rawMail(port: MailPort, key: string, size: number): string {
  const from = port === "submission" ? "me@example.test" : "ann@elsewhere.test"
  const head = `From: ${from}\r\nTo: ann@example.test\r\nSubject: ${key}\r\nMessage-ID: ${messageId(key)}\r\n`
  return `${head}\r\n${`${"x".repeat(70)}\r\n`.repeat(size / 72)}end of ${key}\r\n`
}

/** Says MAIL, RCPT and DATA; `354`, or the first refusal, after which the client may say MAIL again. */
export async function begin(it: SmtpDialogue, port: MailPort): Promise<string> {
  for (const line of ENVELOPE[port]) {
    const reply = await it.say(line)
    if (/^[45]/.test(reply)) return refusedBy(it, reply)
  }
  const reply = await it.say("DATA")
  return reply.startsWith("354") ? reply : refusedBy(it, reply)
}

async function refusedBy(it: SmtpDialogue, reply: string): Promise<string> {
  await it.say("RSET")
  return reply
}

/** Offers the mail in two packets; the reply to its end, or the first refusal before. */
export async function offer(it: SmtpDialogue, port: MailPort, raw: string): Promise<string> {
  const reply = await begin(it, port)
  if (!reply.startsWith("354")) return reply
  it.write(raw.slice(0, raw.length / 2))
  await Bun.sleep(0)
  it.write(`${raw.slice(raw.length / 2)}.\r\n`)
  return (await it.reply()).lines.join(" ")
}

/** The one id that a `2.0.0 Ok: queued as …` names. */
export function idOf(reply: string): string {
  const [, id] = /2\.0\.0 Ok: queued as ([0-9a-f-]{36})$/.exec(reply) ?? []
  expect(id, reply).toBeString()
  return id ?? ""
}

interface InboundMail {
  id: string
  rfc_message_id: string
  status: string
}

/** All mail that came in, page by page. */
export async function receivedMails(server: Belfry): Promise<InboundMail[]> {
  const all: InboundMail[] = []
  let place = ""
  for (;;) {
    const response = await server.request(`/v1/inbound-emails?per_page=100${place}`)
    const { data, meta } = (await response.json()) as {
      data: InboundMail[]
      meta: { next_cursor: string | null }
    }
    all.push(...data)
    if (!meta.next_cursor) return all
    place = `&cursor=${encodeURIComponent(meta.next_cursor)}`
  }
}

/** The ids of the mails that were told as received, one for each time. */
export async function toldMails(server: Belfry): Promise<string[]> {
  const ids: string[] = []
  let place = ""
  for (;;) {
    const response = await server.request(`/v1/events?types=email.received&limit=100${place}`)
    const { data, meta } = (await response.json()) as {
      data: { id: string; data: { message_id: string } }[]
      meta: { next_after: string }
    }
    if (data.length === 0) return ids
    ids.push(...data.map((event) => event.data.message_id))
    place = `&after=${meta.next_after}`
  }
}
