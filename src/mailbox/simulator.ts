import { createHash } from "node:crypto"
import { eq } from "drizzle-orm"
import { invalid } from "../core/errors"
import { secondsFromNow } from "../core/time"
import type { MailboxChaos, ProjectSettings } from "../identity/tables"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { comparable, MAILBOX_DOMAIN } from "../lib/address"
import { feedback } from "../messages/settle"
import { isOpen } from "../messages/status-changes"
import { messages } from "../messages/tables"
import { SmtpReplyError } from "../smtp/mail-session"
import type { Store } from "../store/store"

type Role = "bounce" | "softbounce" | "reject" | "defer" | "slow" | "complain"

const ROLES = new Set<string>(["bounce", "softbounce", "reject", "defer", "slow", "complain"])

const AT_RECIPIENT: Partial<Record<Role, SmtpReplyError>> = {
  bounce: new SmtpReplyError(550, "5.1.1", "There is nobody of this name here"),
  softbounce: new SmtpReplyError(451, "4.2.0", "This mailbox is never ready"),
  reject: new SmtpReplyError(550, "5.7.1", "Refused by policy"),
}

export const DEFERRED = new SmtpReplyError(451, "4.3.0", "Deferred once, try again")

/**
 * The part that an address of the mailbox's own domain plays, as its name says; every other address
 * is delivered. A tag (`bounce+anything@`) is no part of the name.
 */
export function roleOf(address: string): Role | undefined {
  const [local = "", domain] = comparable(address).split("@")
  const name = local.replace(/\+.*$/, "")
  return domain === MAILBOX_DOMAIN && ROLES.has(name) ? (name as Role) : undefined
}

/** The answer to RCPT, or undefined: accepted. */
export const refusalOf = (role: Role | undefined): SmtpReplyError | undefined =>
  role && AT_RECIPIENT[role]

const NONE: MailboxChaos = { bounce_rate: 0, defer_rate: 0, delay_ms: 0, refuse_rate: 0 }

/** The chaos of a project: nothing goes wrong by itself where it was not asked for. */
export const chaosOf = ({ mailbox_chaos }: Partial<ProjectSettings>): MailboxChaos =>
  mailbox_chaos ?? NONE

/** A whole chaos: absent fields are 0. Null where nothing shall go wrong. Throws 422 for more than all. */
export function wholeChaos(given: Partial<MailboxChaos>): MailboxChaos | null {
  const { bounce_rate = 0, defer_rate = 0, refuse_rate = 0, delay_ms = 0 } = given
  const sum = bounce_rate + defer_rate + refuse_rate
  // Three tenths and seven tenths are a little more than 1 in binary.
  if (sum > 1 + Number.EPSILON) {
    const message = `bounce_rate, defer_rate and refuse_rate are ${sum} together. They may be 1 at most.`
    throw invalid("bounce_rate", "invalid", message)
  }
  return sum + delay_ms === 0 ? null : { bounce_rate, defer_rate, delay_ms, refuse_rate }
}

/** What the embedded mailbox does to a recipient on purpose, as its address `bounce@` and so on does. */
export type Mishap = "bounce" | "defer" | "reject"

/**
 * What goes wrong for one recipient of one message. Chosen by a hash of both, so that a repetition meets
 * the same, whichever node it comes to.
 */
export function mishapOf(
  chaos: MailboxChaos,
  message: string,
  address: string,
): Mishap | undefined {
  const { bounce_rate, defer_rate, refuse_rate } = chaos
  if (bounce_rate + defer_rate + refuse_rate === 0) return undefined
  const place = placeOf(message, address)
  if (place < bounce_rate) return "bounce"
  if (place < bounce_rate + defer_rate) return "defer"
  return place < bounce_rate + defer_rate + refuse_rate ? "reject" : undefined
}

/** From 0 to below 1, evenly. */
const placeOf = (message: string, address: string): number =>
  createHash("sha256").update(`${message}\n${address}`).digest().readUInt32BE() / 2 ** 32

const MAX_REMEMBERED = 10_000

/** Remembers which messages were deferred already; the oldest are forgotten first. */
export function deferOnce(): (key: string) => boolean {
  const seen = new Set<string>()
  return (key) => {
    if (seen.has(key)) return false
    seen.add(key)
    if (seen.size > MAX_REMEMBERED) seen.delete(seen.values().next().value ?? "")
    return true
  }
}

const AFTER_SECONDS = 1
const PATIENCE_ATTEMPTS = 30

interface Complaint {
  message_id: string
}

/** `complain@` read its mail and did not like it: durable, so that a restart does not forget. */
export const mailboxComplain: JobKind<Complaint> = {
  name: "mailbox.complain",
  schedule: (attempt) => (attempt < PATIENCE_ATTEMPTS ? AFTER_SECONDS : undefined),
}

/** Called when the mail is stored; the complaint follows a second later. */
export async function plan(store: Store, message_id: string): Promise<void> {
  await store.tx(async (tx) => {
    const [row] = await tx.select().from(messages).where(eq(messages.id, message_id))
    if (!row) return
    const work = { payload: { message_id }, project_id: row.project_id }
    await enqueue(tx, mailboxComplain, { ...work, run_at: secondsFromNow(AFTER_SECONDS) })
  })
}

/** Waits for the delivery to be settled, then reports it as spam (RFC 5965, type `abuse`). */
export const complain = (store: Store): JobHandler<Complaint> => ({
  async run({ message_id }) {
    const [message] = await store.read.select().from(messages).where(eq(messages.id, message_id))
    const complainers =
      message?.recipients.filter(({ email }) => roleOf(email) === "complain") ?? []
    if (complainers.some(({ status }) => isOpen(status)))
      return { retry: "The message is not delivered yet." }
    return {
      async done(tx) {
        for (const { email } of complainers) {
          const fact = { type: "complained", complaint_feedback_type: "abuse" } as const
          await feedback(tx, message_id, { ...fact, address: email })
        }
      },
    }
  },
})
