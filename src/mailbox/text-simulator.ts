import { and, eq } from "drizzle-orm"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { enqueue } from "../jobs/jobs"
import { MAILBOX_DOMAIN } from "../lib/address"
import { encodedBody, mailboxField, textField } from "../lib/mime"
import { messages } from "../messages/tables"
import { providerFeedback } from "../providers/callbacks"
import { INSTANCE } from "../providers/tables"
import type { OutgoingText, SimulatedReport, TextSimulator } from "../sms/providers/provider"
import type { Store } from "../store/store"
import { keep, type NewMailboxMail } from "./mailbox"

/** Of the addresses that stand for numbers. */
const TEXT_DOMAIN = `sms.${MAILBOX_DOMAIN}`

const NOT_TAKEN = "The carrier refused the text."

/** Characters of a text that its mail shows as the subject. */
const SUBJECT_LENGTH = 60

/**
 * What becomes of a text that never leaves the server: it stands in the embedded mailbox, where that runs, and
 * reports and answers come as jobs, so that a restart does not forget them.
 */
export const textSimulator = (store: Store, has_mailbox: boolean): TextSimulator => ({
  async show(text, from) {
    if (!has_mailbox) return
    await store.tx(async (tx) => {
      const { account_id, project_id, id } = messages
      const ours = and(eq(project_id, text.project_id), eq(id, text.message_id))
      const [owner] = await tx.select({ account_id }).from(messages).where(ours)
      if (owner) await keep(tx, mailOf(text, from, owner.account_id), text.to)
    })
  },
  async report(text, report, in_seconds) {
    const { project_id } = text
    const [payload, run_at] = [reportOf(text, report), secondsFromNow(in_seconds)]
    await store.tx((tx) => enqueue(tx, providerFeedback, { payload, project_id, run_at }))
  },
})

function reportOf({ project_id, message_id }: OutgoingText, { type, received }: SimulatedReport) {
  return {
    ...{ config_id: INSTANCE, provider: "log", project_id, message_id },
    notices: type ? [{ type, response: type === "undelivered" ? NOT_TAKEN : null }] : [],
    ...(received && { received }),
  }
}

function mailOf(text: OutgoingText, from: string, account_id: string): NewMailboxMail {
  const { message_id: email_id, project_id, text: body } = text
  const created_at = now()
  const from_address = addressOf(from)
  const recipients = text.to.map(addressOf)
  const [first_line = ""] = body.trim().split(/[\r\n]/, 1)
  const subject = [...first_line.replace(/\p{Cc}/gu, " ")].slice(0, SUBJECT_LENGTH).join("")
  const { encoding, text: encoded } = encodedBody(body.replace(/\r\n?|\n/g, "\r\n"))
  const head = [
    mailboxField("From", [{ name: from, address: from_address }]),
    mailboxField(
      "To",
      recipients.map((address, at) => ({ name: text.to[at] ?? "", address })),
    ),
    textField("Subject", subject),
    `Date: ${new Date(created_at).toUTCString().replace("GMT", "+0000")}\r\n`,
    `Message-ID: <${email_id}@${TEXT_DOMAIN}>\r\n`,
    "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n",
    `Content-Transfer-Encoding: ${encoding}\r\n`,
  ].join("")
  const raw = Buffer.from(`${head}\r\n${encoded}\r\n`)
  return {
    ...{ id: newId(), project_id, account_id, email_id, mail_from: from_address, recipients },
    ...{ to_address: recipients[0] ?? "", from_address, subject, raw, size: raw.length },
    ...{ attachments: 0, created_at },
  }
}

/** The digits of a number; of a name what an address may hold of it. */
function addressOf(party: string): string {
  const local = party.toLowerCase().replace(/[^a-z0-9]+/g, "-")
  return `${local.replace(/^-|-$/g, "") || "sender"}@${TEXT_DOMAIN}`
}
