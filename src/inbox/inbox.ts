import { isDeepStrictEqual } from "node:util"
import { and, eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { isPast, now } from "../core/time"
import { type NamedBy, removeByIds } from "../messages/message-retention"
import { rowById } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { contentsOf, giveContent } from "./kept-contents"
import { InboxLedger } from "./ledger"
import { entriesForUpdate, InboxFacts, type Mark, markedAs } from "./marks"
import { rewriteRow } from "./note-row"
import { withParts } from "./records"
import { type InboxContent, type InboxEntry, inboxEntries } from "./tables"

/** Whose messages are meant: of a whole project, or of one subscriber of it. */
export interface InboxOwner {
  project_id: string
  subscriber_id?: string
}

const owned = ({ project_id, subscriber_id }: InboxOwner) =>
  and(
    eq(inboxEntries.project_id, project_id),
    subscriber_id === undefined ? undefined : eq(inboxEntries.subscriber_id, subscriber_id),
  )

export const noMessage = (): never => fail("not_found", "There is no such inbox message.")

/** One that has expired is gone, also before it is removed. Throws 404. */
export async function find(db: Reader, owner: InboxOwner, id: string): Promise<InboxEntry> {
  const entry = await rowById(db, inboxEntries, id, owned(owner))
  if (!entry || hasExpired(entry)) return noMessage()
  return entry
}

export const hasExpired = ({ expires_at }: InboxEntry): boolean =>
  expires_at !== null && isPast(expires_at)

/** Messages of one inbox that a transaction changes, held. */
interface HeldMessages {
  ledger: InboxLedger
  facts: InboxFacts
  entries: InboxEntry[]
}

/** Runs `act` with the messages that the owner has among the ids, and writes what it changes. */
async function changing<Result>(
  tx: Tx,
  owner: InboxOwner,
  ids: string[],
  act: (held: HeldMessages) => Promise<Result> | Result,
): Promise<Result> {
  const { id, subscriber_id } = inboxEntries
  const found = await tx
    .select({ id, subscriber_id })
    .from(inboxEntries)
    .where(and(owned(owner), inArray(id, ids.filter(isUuid))))
  const people = found.map((row) => row.subscriber_id)
  const own = found.map((row) => row.id)
  // The inbox is held before its messages, here as everywhere.
  const ledger = await InboxLedger.open(tx, owner.project_id, people)
  const rows = own.length > 0 ? await entriesForUpdate(tx, own) : []
  const entries = rows.filter((row) => people.includes(row.subscriber_id) && !hasExpired(row))
  const facts = new InboxFacts()
  const result = await act({ ledger, facts, entries })
  await ledger.close()
  await facts.tell(tx)
  return result
}

/** The same with one message. Throws 404. */
const changingOne = (
  tx: Tx,
  owner: InboxOwner,
  id: string,
  act: (held: HeldMessages & { entry: InboxEntry }) => Promise<InboxEntry> | InboxEntry,
): Promise<InboxEntry> =>
  changing(tx, owner, [id], (held) => {
    const [entry] = held.entries
    return entry ? act({ ...held, entry }) : noMessage()
  })

/** Marks messages of an inbox. Ids that it does not have are passed over. Returns how many changed. */
export const markSome = (tx: Tx, owner: InboxOwner, ids: string[], mark: Mark): Promise<number> =>
  changing(tx, owner, ids, ({ ledger, facts, entries }) => {
    const at = now()
    let changed = 0
    for (const entry of entries) {
      const changes = markedAs(entry, mark, at)
      if (!changes) continue
      facts.change(ledger, entry, changes)
      changed += 1
    }
    return changed
  })

/** As `markSome` for one message. Throws 404. */
export const markOne = (tx: Tx, owner: InboxOwner, id: string, mark: Mark): Promise<InboxEntry> =>
  changingOne(tx, owner, id, ({ ledger, facts, entry }) => {
    const changes = markedAs(entry, mark, now())
    return changes ? facts.change(ledger, entry, changes) : entry
  })

/** What may be changed of a message. What is absent stays. */
export interface InboxPatch {
  content?: Partial<InboxContent>
  category?: string | null
  tags?: string[]
  metadata?: Record<string, unknown>
  expires_at?: string | null
  snoozed_until?: string | null
  read?: boolean
  seen?: boolean
  archived?: boolean
}

/** Changes one message. What is said already changes nothing. Throws 404. */
export const patch = (
  tx: Tx,
  owner: InboxOwner,
  id: string,
  given: InboxPatch,
): Promise<InboxEntry> =>
  changingOne(tx, owner, id, async ({ ledger, facts, entry }) => {
    const changes = stateOf(entry, given)
    const { expires_at, category, tags, metadata } = given
    if (expires_at !== undefined && expires_at !== entry.expires_at) changes.expires_at = expires_at
    if (category !== undefined && category !== entry.category) changes.category = category
    const content = given.content && (await changedContent(tx, entry, given.content))
    if (content) changes.content_id = await giveContent(tx, entry, content)
    const row = {
      ...(content && { subject: content.title }),
      ...("category" in changes && { category }),
      ...((tags || metadata) && (await changedAlong(tx, entry, given))),
    }
    const is_rewritten = Object.keys(row).length > 0
    if (is_rewritten) await rewriteRow(tx, entry, row)
    const is_same = !is_rewritten && Object.keys(changes).length === 0
    return is_same ? entry : facts.change(ledger, entry, changes)
  })

/** Undefined where it says the same already. */
async function changedContent(tx: Tx, { content_id }: InboxEntry, given: Partial<InboxContent>) {
  const before = (await contentsOf(tx, [content_id])).get(content_id) ?? noMessage()
  const after = { ...before, ...given }
  return isDeepStrictEqual(before, after) ? undefined : after
}

/** What differs of what a message carries along. */
async function changedAlong(
  tx: Tx,
  entry: InboxEntry,
  { tags, metadata }: Pick<InboxPatch, "tags" | "metadata">,
) {
  const [before] = await withParts(tx, [entry])
  return {
    ...(tags && !isDeepStrictEqual(tags, before?.tags) && { tags }),
    ...(metadata && !isDeepStrictEqual(metadata, before?.metadata) && { metadata }),
  }
}

/** The states in their order: what is read was seen, and what is not seen is not read. */
function stateOf(entry: InboxEntry, { seen, read, archived, snoozed_until }: InboxPatch) {
  const at = now()
  let after: InboxEntry = entry
  const mark = (as: Mark) => {
    after = { ...after, ...markedAs(after, as, at) }
  }
  if (seen === true) mark("seen")
  if (read !== undefined) mark(read ? "read" : "unread")
  if (seen === false) after = { ...after, seen_at: null, read_at: null }
  if (archived !== undefined) mark(archived ? "archived" : "unarchived")
  if (snoozed_until !== undefined) after = { ...after, snoozed_until }
  const names = ["seen_at", "read_at", "archived_at", "snoozed_until"] as const
  const changed = names.filter((name) => after[name] !== entry[name])
  return Object.fromEntries(changed.map((name) => [name, after[name]])) as Partial<InboxEntry>
}

/** Uses an action of a message, which is told each time. Throws 404 for an action that it does not have. */
export const act = (
  tx: Tx,
  owner: InboxOwner,
  id: string,
  action_key: string,
): Promise<InboxEntry> =>
  changingOne(tx, owner, id, async ({ ledger, facts, entry }) => {
    const content = (await contentsOf(tx, [entry.content_id])).get(entry.content_id)
    if (!content?.actions.some(({ key }) => key === action_key)) {
      return fail("not_found", "The message has no such action.")
    }
    facts.note({ entry, fact: "action", action_key })
    const completed = { ...entry.completed, [action_key]: now() }
    return ledger.change(entry, { completed })
  })

/** Removes one message for good. Throws 404. */
export async function remove(tx: Tx, owner: InboxOwner, id: string, named_by: NamedBy) {
  // Held, so that of two deletions at once the later one finds nothing.
  const entry = await changingOne(tx, owner, id, (held) => held.entry)
  await removeByIds(tx, [entry.id], named_by)
}

/** Takes messages out of their inboxes, in the transaction that removes them. Those of other channels are passed over. */
export async function leave(tx: Tx, ids: string[]): Promise<void> {
  const { id, project_id, subscriber_id } = inboxEntries
  const rows = tx.select({ project_id, subscriber_id }).from(inboxEntries)
  const found = await rows.where(inArray(id, ids))
  const [first] = found
  if (!first) return
  const people = found.map((row) => row.subscriber_id)
  const ledger = await InboxLedger.open(tx, first.project_id, people)
  const entries = await entriesForUpdate(tx, ids)
  // A merge moved some meanwhile.
  if (entries.some((entry) => !people.includes(entry.subscriber_id))) return leave(tx, ids)
  for (const entry of entries) ledger.remove(entry)
  await ledger.close()
}
