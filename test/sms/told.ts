import { asc, eq } from "drizzle-orm"
import { chooseByNumber, numberChoice } from "../../src/consents/number-choice"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { events } from "../../src/events/tables"
import type { JobRow } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { OVER } from "../../src/jobs/work-item"
import { accept } from "../../src/messages/pipeline"
import { applyFeedback } from "../../src/messages/provider-feedback"
import { settle } from "../../src/messages/settle"
import { messages, type NewMessage } from "../../src/messages/tables"
import type { ProviderFeedback } from "../../src/providers/callbacks"
import type { Outcome, ReceivedText } from "../../src/providers/provider"
import { receiveText } from "../../src/sms/replies"
import type { Store } from "../../src/store/store"
import { letter, outcome, told } from "../messages/letters"

export const NUMBER = "+14155550101"
export const OURS = "+14155550199"

interface Owner {
  account_id: string
  project_id: string
}

/** A text to a number, accepted and not sent. */
export async function addText(
  store: Store,
  { account_id, project_id }: Owner,
  more: Partial<NewMessage> = {},
): Promise<string> {
  const recipient = { email: NUMBER, name: null, kind: "to", status: "queued" } as const
  const message = letter({
    ...{ account_id, project_id, channel: "sms", address: NUMBER, sender: OURS },
    recipients: [{ ...recipient, status_reason: null }],
    ...{ envelope: null, sender_domain: null, subject: null, rfc_message_id: null },
    content: { body: "Ding" },
    ...more,
  })
  await store.tx((tx) => accept(tx, [message]))
  return message.id
}

/** The end of an attempt of a text. */
export async function sent(store: Store, id: string, more: Partial<Outcome> = {}) {
  const end = {
    outcome: { ...outcome([told(NUMBER, { status: "sent" })]), provider: "log", ...more },
    ...{ started_at: now(), duration_ms: 1, attempt: 1, keep: undefined },
  }
  const after = { state: OVER, run_at: now(), attempt: 1, owner: null, lease_until: null }
  const row = { id, attempt: 1 }
  await store.tx((tx) => settle(tx, [{ row, after, reason: null, end } as never]))
}

export const read = async (store: Store, id: string) => {
  const [row] = await store.read.select().from(messages).where(eq(messages.id, id))
  if (!row) throw new Error("the text is gone")
  return row
}

/** What the handler of callbacks answers. Everything that it writes is written. */
export async function tell(store: Store, payload: Partial<ProviderFeedback>, created_at = now()) {
  const whole = { config_id: newId(), provider: "log", project_id: null, notices: [], ...payload }
  const result = await applyFeedback(store, receiveText).run(whole, { created_at } as JobRow)
  if (result.done) await store.tx(async (tx) => result.done?.(tx))
  return result
}

/** A text comes in. */
export const write = (
  store: Store,
  { project_id }: Owner,
  text: string,
  more: Partial<ReceivedText> = {},
  config_id = newId(),
) => {
  const received = { provider_message_id: newId(), from: NUMBER, to: OURS, text, ...more }
  return tell(store, { config_id, project_id, received })
}

/** Makes the choices that keywords asked for. */
export async function chooseAll(store: Store) {
  const rows = await store.read.select().from(jobs).where(eq(jobs.name, numberChoice.name))
  const handler = chooseByNumber(store, { mac: () => Buffer.alloc(0) } as never)
  for (const row of rows) {
    await handler.run(row.payload as never, row)
    await store.tx((tx) => tx.delete(jobs).where(eq(jobs.id, row.id)))
  }
  return rows.length
}

/** Of a project, in their order. */
export async function eventsOf(store: Store, { project_id }: Owner, like = "") {
  const rows = store.read.select().from(events).where(eq(events.project_id, project_id))
  const all = await rows.orderBy(asc(events.position), asc(events.id))
  return all.filter(({ type }) => type.startsWith(like))
}

export const typesOf = async (store: Store, owner: Owner, like = "") =>
  (await eventsOf(store, owner, like)).map(({ type }) => type)
