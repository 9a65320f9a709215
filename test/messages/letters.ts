import { asc, eq, ne } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { LEASED, OVER } from "../../src/jobs/work-item"
import { asTheyStand, type MessageView } from "../../src/messages/message-list"
import type { Message } from "../../src/messages/status-changes"
import { messages, type NewMessage, type Recipient } from "../../src/messages/tables"
import type { Outcome, RecipientOutcome } from "../../src/providers/provider"
import type { Reader, Store } from "../../src/store/store"
import { idFor } from "../harness/ids"

export const PROJECT = idFor("project_1")

const NO_REPLY = { smtp_code: null, enhanced_code: null, response: null, mx: null, tls: null }

/** A complete message on its way in, to `to@`, and whoever else is named. */
export function letter(more: Partial<NewMessage> = {}, cc: string[] = [], bcc: string[] = []) {
  const id = newId()
  const to = "to@example.test"
  const recipient = (kind: Recipient["kind"]) => (email: string) => ({
    email,
    name: null,
    kind,
    status: "queued" as const,
    status_reason: null,
  })
  const message: NewMessage = {
    id,
    account_id: idFor("account_1"),
    project_id: PROJECT,
    channel: "email",
    address: to,
    sender: "bell@example.test",
    sender_domain: "example.test",
    subject: "Ding",
    recipients: [recipient("to")(to), ...cc.map(recipient("cc")), ...bcc.map(recipient("bcc"))],
    envelope: {
      from: { email: "bell@example.test", name: null },
      reply_to: [],
      attachments: [],
    },
    batch_id: null,
    stream: "transactional",
    source: "api",
    tags: [],
    metadata: {},
    api_key_id: null,
    idempotency_key: null,
    rfc_message_id: `<${id}@example.test>`,
    thread_id: null,
    sandbox: false,
    created_at: now(),
    content: { html: null, text: "Dong", headers: {} },
    ...more,
  }
  return message
}

type Told = Partial<RecipientOutcome> & Pick<RecipientOutcome, "status">

/** What came of one recipient; a refusal brings the server's words. */
export function told(email: string, { status, ...more }: Told): RecipientOutcome {
  const response =
    status === "retry" ? "451 4.2.0 later" : status === "bounced" ? "550 5.1.1 no" : null
  return {
    address: email,
    status,
    reason: status === "retry" || status === "bounced" ? response : null,
    bounce_subtype: status === "bounced" ? "NoEmail" : null,
    code: null,
    reply: { ...NO_REPLY, response },
    ...more,
  }
}

export interface Tried {
  /** Seconds to the next attempt; undefined gives up. */
  next?: (attempt: number) => number | undefined
}

/** What one attempt came to, the first one speaking for the `to` recipient. */
export function outcome(list: RecipientOutcome[], { next = () => 60 }: Tried = {}): Outcome {
  const [first, ...others] = list
  if (!first) throw new Error("an outcome speaks of somebody")
  return { ...first, others, provider: "smtp", transcript: ["MAIL FROM"], schedule: next }
}

/** A message: its row, and how it stands. */
export async function read(db: Reader, id: string): Promise<Message & MessageView> {
  const rows = await db.select().from(messages).where(eq(messages.id, id))
  const [[message], [view]] = [rows, await asTheyStand(db, rows)]
  if (!message || !view) throw new Error("the message is gone")
  return { ...message, ...view }
}

/** The messages that are open work, or dead. */
export async function openWork(db: Reader) {
  const open = db.select().from(messages).where(ne(messages.state, OVER)).orderBy(asc(messages.id))
  return (await open).map(({ id, state, run_at, attempt, owner, lease_until, status_reason }) => {
    return { id, state, run_at, attempt, owner, lease_until, last_error: status_reason }
  })
}

/** The events of a message, in order, as `type recipient`. */
export async function story(db: Reader, id: string): Promise<string[]> {
  const rows = db.select().from(events).where(eq(events.subject_id, id))
  const told = await rows.orderBy(asc(events.position), asc(events.id))
  return told.map(({ type, data }) => `${type} ${String(data.recipient_email).split("@")[0]}`)
}

/** A message as if it had been leased for the given attempt. */
export async function leased(store: Store, message_id: string, attempt: number): Promise<Message> {
  const change = { state: LEASED, owner: "me", attempt }
  const [message] = await store.tx((tx) =>
    tx.update(messages).set(change).where(eq(messages.id, message_id)).returning(),
  )
  if (!message) throw new Error("the message is gone")
  return message
}
