import { and, desc, eq, gt, isNull, or, sql } from "drizzle-orm"
import type { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { admit, countUsage, type MessageEntry } from "../messages/admission"
import * as pipeline from "../messages/pipeline"
import type { Envelope, NewMessage } from "../messages/tables"
import { prepared } from "../store/statements"
import type { Tx } from "../store/store"
import { countFacts } from "./inbox-stats"
import { giveContent, insertContents } from "./kept-contents"
import { InboxLedger } from "./ledger"
import { rewriteRow } from "./note-row"
import { type InboxContent, type InboxEntry, inboxEntries } from "./tables"

/** What an inbox keeps of a new message, beside its row. */
export interface InboxNote {
  content: InboxContent
  /** The id under which its content is stored once for many; null: it has its own. */
  shared_id: string | null
  collapse_key: string | null
  expires_at: string | null
}

type Carried =
  | "account_id"
  | "project_id"
  | "api_key_id"
  | "sandbox"
  | "stream"
  | "source"
  | "category"
  | "template_id"
  | "tags"
  | "metadata"

interface NewNote
  extends Pick<NewMessage, Carried>,
    Partial<Pick<NewMessage, "batch_id" | "idempotency_key" | "fan_out_id">> {
  subscriber: { id: string; external_id: string }
  envelope: Envelope
  note: InboxNote
}

/** The columns of a message that name its subscriber. */
export const addressedTo = (address: string): Pick<NewMessage, "address" | "recipients"> => ({
  address,
  recipients: [
    { email: address, name: null, kind: "to", status: "delivered", status_reason: null },
  ],
})

/** The message as it can be accepted. Its address is its subscriber. */
export function newNote({ subscriber, note, envelope, ...given }: NewNote): NewMessage {
  const { id: address, external_id } = subscriber
  const { category, batch_id = null, idempotency_key = null, fan_out_id = null } = given
  return {
    ...given,
    ...{ id: newId(), channel: "in_app", ...addressedTo(address), subscriber_id: address },
    ...{ sender: null, sender_domain: null, rfc_message_id: null, thread_id: null },
    ...{ batch_id, idempotency_key, fan_out_id },
    subject: note.content.title,
    envelope: { ...envelope, ...(category != null && { category }) },
    content: note.shared_id === null ? note.content : null,
    delivered: { external_id, kept: note },
    created_at: now(),
  }
}

/**
 * Accepts messages into their inboxes, all or each for itself as `admit` says. One whose `collapse_key` an unread message
 * has gives that one its content: the answer then has the id of the older one.
 */
export async function acceptNotes(
  tx: Tx,
  entries: MessageEntry[],
  mode?: Parameters<typeof admit>[2],
): Promise<(Pick<pipeline.Message, "id"> | ApiError)[]> {
  const refused = await admit(tx, entries, mode)
  const admitted = entries.filter((entry) => !refused.has(entry))
  const [first] = admitted
  const answers = new Map<MessageEntry, Pick<pipeline.Message, "id"> | ApiError>(refused)
  if (first) {
    const { project_id } = first.message
    const ledger = await InboxLedger.open(
      tx,
      project_id,
      admitted.map(({ message }) => message.address),
    )
    const older = await olderOf(tx, admitted)
    const fresh = admitted.filter((entry) => !older.has(entry))
    const accepted = await pipeline.accept(
      tx,
      fresh.map(({ message }) => message),
    )
    await addAll(tx, ledger, fresh)
    await replaceAll(tx, ledger, older)
    await ledger.close()
    await countUsage(tx, admitted)
    for (const [at, entry] of fresh.entries()) answers.set(entry, { id: accepted[at]?.id ?? "" })
    for (const [entry, { id }] of older) answers.set(entry, { id })
  }
  return entries.map((entry) => {
    const answer = answers.get(entry)
    if (!answer) throw new Error("a message was neither accepted nor refused")
    return answer
  })
}

const noteOf = ({ message }: MessageEntry) => message.delivered?.kept as InboxNote

async function addAll(tx: Tx, ledger: InboxLedger, fresh: MessageEntry[]): Promise<void> {
  const contents = new Map<string, { id: string; project_id: string; content: InboxContent }>()
  for (const entry of fresh) {
    const { id: own, project_id, address, category = null, tags, created_at } = entry.message
    const { content, shared_id, collapse_key, expires_at } = noteOf(entry)
    const id = shared_id ?? own
    contents.set(id, { id, project_id, content })
    const state: InboxEntry = {
      ...{ id: own, project_id, subscriber_id: address, content_id: id, seq: 0 },
      ...{ category, collapse_key, expires_at, wakes_at: expires_at },
      ...{ seen_at: null, read_at: null, archived_at: null, snoozed_until: null },
      ...{ completed: null, told: 0, created_at, updated_at: created_at },
    }
    ledger.add(state, { content, tags })
  }
  // In one order: chunks of a publish that run at once write the same contents.
  const ordered = [...contents.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  await insertContents(tx, ordered)
  await countFacts(
    tx,
    fresh.map(({ message: { project_id } }) => ({ project_id, fact: "created" })),
  )
}

/** The unread messages that have the keys of new ones. */
async function olderOf(tx: Tx, entries: MessageEntry[]): Promise<Map<MessageEntry, InboxEntry>> {
  const older = new Map<MessageEntry, InboxEntry>()
  for (const entry of entries) {
    const { collapse_key } = noteOf(entry)
    if (collapse_key === null) continue
    const asked = { subscriber_id: entry.message.address, collapse_key, expires_at: now() }
    const [found] = await findByKey(tx, asked)
    if (found) older.set(entry, found)
  }
  return older
}

/** The id and the time stay. Everything else is that of the new message, and it is unseen again. */
async function replaceAll(
  tx: Tx,
  ledger: InboxLedger,
  older: Map<MessageEntry, InboxEntry>,
): Promise<void> {
  for (const [entry, before] of older) {
    const { content, shared_id, expires_at } = noteOf(entry)
    const { category = null, tags, metadata, subject, template_id = null } = entry.message
    const content_id = await giveContent(tx, before, content, shared_id)
    await rewriteRow(tx, before, { category, tags, metadata, subject, template_id })
    ledger.change(before, {
      ...{ content_id, category, expires_at },
      ...{ seen_at: null, snoozed_until: null, completed: null },
    })
  }
}

const { subscriber_id, collapse_key, expires_at, id } = inboxEntries

/** One that has expired is gone, also before it is removed. */
const findByKey = prepared({ subscriber_id, collapse_key, expires_at }, (tx: Tx, slot) =>
  tx
    .select()
    .from(inboxEntries)
    .where(
      and(
        eq(subscriber_id, slot.subscriber_id),
        eq(collapse_key, slot.collapse_key),
        or(isNull(expires_at), gt(expires_at, slot.expires_at)),
        sql`collapse_key IS NOT NULL AND read_at IS NULL AND archived_at IS NULL`,
      ),
    )
    .orderBy(desc(id))
    .limit(1),
)
