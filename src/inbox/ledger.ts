import { and, eq, gt, sql } from "drizzle-orm"
import { now } from "../core/time"
import { perStore } from "../store/cached"
import { forUpdate, idList, isAmong } from "../store/columns"
import { adder, inserter, newRowInserter, prepared, remover, updater } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { removeContents } from "./kept-contents"
import {
  type BulkKind,
  type BulkScope,
  type InboxChangeKind,
  type InboxContent,
  type InboxEntry,
  inboxCategories,
  inboxChanges,
  inboxEntries,
  inboxes,
} from "./tables"

/** What an inbox holds: archived and snoozed messages count nowhere. */
export interface InboxTotals {
  unread: number
  unseen: number
  total: number
}

/** What a new message shows beside its entry. */
export interface ShownParts {
  content: InboxContent
  tags: string[]
}

/** A change that is on disk, for the followers of the inbox on this node. */
export interface InboxChange {
  project_id: string
  subscriber_id: string
  seq: number
  /** `counts`: rows of an earlier change of many followed, so that only the totals are new. */
  kind: InboxChangeKind | "counts"
  entry_id: string | null
  scope: BulkScope | null
  counts: InboxTotals
  /** Of a new message, so that nobody reads it again. */
  created?: { entry: InboxEntry } & ShownParts
}

type Follower = (changes: readonly InboxChange[]) => void

const followersOf = perStore(() => new Set<Follower>())

/**
 * Calls `follower` after each commit of this store that changed inboxes, until the returned function is called. The
 * changes of an inbox come in their order.
 */
export function followInboxes(db: Reader, follower: Follower): () => void {
  const followers = followersOf(db)
  followers.add(follower)
  return () => void followers.delete(follower)
}

type InboxRow = typeof inboxes.$inferSelect

/**
 * The only way to change inboxes. It holds those of some subscribers until the end of the transaction, gives each change
 * the next number of its inbox, and keeps the totals. `close` writes everything.
 */
export class InboxLedger {
  readonly #tx: Tx
  readonly #rows: Map<string, InboxRow>
  readonly #changes: InboxChange[] = []
  readonly #fresh: InboxEntry[] = []
  readonly #changed = new Map<string, InboxEntry>()
  readonly #gone: InboxEntry[] = []
  readonly #categories: { subscriber_id: string; category: string; unread: number }[] = []
  readonly #at = now()

  private constructor(tx: Tx, rows: Map<string, InboxRow>) {
    this.#tx = tx
    this.#rows = rows
  }

  static async open(tx: Tx, project_id: string, subscriber_ids: string[]): Promise<InboxLedger> {
    const ids = [...new Set(subscriber_ids)]
    const known = new Set((await findInboxes(tx, { ids })).map(({ id }) => id))
    const none = { project_id, last_seq: 0, unread: 0, unseen: 0, total: 0 }
    const missing = ids.filter((id) => !known.has(id)).sort()
    // Before any is held: then two transactions that have some in common hold them in one order.
    await insertInboxes(
      tx,
      missing.map((id) => ({ id, ...none })),
    )
    const rows = await findForUpdate(tx, { ids })
    if (rows.length < ids.length) return InboxLedger.open(tx, project_id, ids) // one was dropped just now
    return new InboxLedger(tx, new Map(rows.map((row) => [row.id, row])))
  }

  /** A new message. The entry gets its number. */
  add(entry: InboxEntry, parts: ShownParts): InboxEntry {
    const whole = { ...entry, seq: this.#next(entry), updated_at: this.#at }
    this.#fresh.push(whole)
    this.#count(undefined, whole)
    this.#tell("created", whole, { entry: whole, ...parts })
    return whole
  }

  /** A changed message. Returns it with its new number. */
  change(before: InboxEntry, changes: Partial<InboxEntry>): InboxEntry {
    const after = { ...before, ...changes, seq: this.#next(before), updated_at: this.#at }
    after.wakes_at = firstOf(after.snoozed_until, after.expires_at)
    this.#changed.set(after.id, after)
    this.#count(before, after)
    this.#tell("updated", after)
    return after
  }

  /** A message that leaves the inbox. */
  remove(before: InboxEntry): void {
    this.#next(before)
    this.#gone.push(before)
    this.#count(before, undefined)
    this.#tell("deleted", before)
  }

  /** A message that moves to another inbox, as it is. The caller writes whose it is now. */
  move(before: InboxEntry, subscriber_id: string, parts: ShownParts): void {
    this.#next(before)
    this.#count(before, undefined)
    this.#tell("deleted", before)
    const moved = { ...before, subscriber_id, updated_at: this.#at }
    const whole = { ...moved, seq: this.#next(moved) }
    this.#changed.set(whole.id, whole)
    this.#count(undefined, whole)
    this.#tell("created", whole, { entry: whole, ...parts })
  }

  /** The number of a change of many messages of one inbox, which follow with `within`. */
  begin(subscriber_id: string, kind: BulkKind, scope: BulkScope): number {
    const row = this.#row(subscriber_id)
    row.last_seq += 1
    this.#push(row, { kind, entry_id: null, scope })
    return row.last_seq
  }

  /** A message that a change of many changes, with the number of that change. */
  within(before: InboxEntry, changes: Partial<InboxEntry>, seq: number): void {
    const after = { ...before, ...changes, seq, updated_at: this.#at }
    this.#changed.set(after.id, after)
    this.#count(before, after)
  }

  /** Tells the totals again, where rows of an earlier change followed. */
  recount(subscriber_id: string): void {
    this.#push(this.#row(subscriber_id), { kind: "counts", entry_id: null, scope: null })
  }

  /** Writes everything. Followers are told after the commit. */
  async close(): Promise<void> {
    const tx = this.#tx
    if (this.#changes.length === 0) return
    await insertEntries(tx, this.#fresh)
    await updateEntries(tx, [...this.#changed.values()])
    if (this.#gone.length > 0) {
      await removeEntries(tx, this.#gone)
      await removeContents(tx, this.#gone)
    }
    const rows = [...this.#rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    await updateInboxes(tx, rows)
    await addToCategories(tx, this.#categories)
    await insertChanges(
      tx,
      this.#changes.flatMap(({ kind, counts: _, created: __, ...change }) =>
        kind === "counts" ? [] : [{ ...change, kind, created_at: this.#at }],
      ),
    )
    const changes = this.#changes
    // The totals of a change are those behind all that it changed.
    for (const one of changes)
      if (one.entry_id === null) one.counts = countsOf(this.#row(one.subscriber_id))
    tx.afterCommit(() => {
      for (const follower of followersOf(tx)) follower(changes)
    })
  }

  #row(subscriber_id: string): InboxRow {
    const row = this.#rows.get(subscriber_id)
    if (!row) throw new Error("an inbox was changed that the transaction does not hold")
    return row
  }

  #next({ subscriber_id }: InboxEntry): number {
    const row = this.#row(subscriber_id)
    row.last_seq += 1
    return row.last_seq
  }

  #count(before: InboxEntry | undefined, after: InboxEntry | undefined) {
    for (const [entry, by] of [
      [before, -1],
      [after, 1],
    ] as const) {
      if (!entry || entry.archived_at !== null || entry.snoozed_until !== null) continue
      const { subscriber_id, category, read_at, seen_at } = entry
      const row = this.#row(subscriber_id)
      row.total += by
      if (seen_at === null) row.unseen += by
      if (read_at !== null) continue
      row.unread += by
      if (category !== null) this.#categories.push({ subscriber_id, category, unread: by })
    }
  }

  #tell(kind: InboxChangeKind, entry: InboxEntry, created?: InboxChange["created"]) {
    const row = this.#row(entry.subscriber_id)
    this.#push(row, { kind, entry_id: entry.id, scope: null, ...(created && { created }) })
  }

  #push(row: InboxRow, change: Pick<InboxChange, "kind" | "entry_id" | "scope" | "created">) {
    const { id: subscriber_id, project_id, last_seq: seq } = row
    this.#changes.push({ project_id, subscriber_id, seq, counts: countsOf(row), ...change })
  }
}

export const countsOf = ({ unread, unseen, total }: InboxTotals): InboxTotals => ({
  ...{ unread, unseen, total },
})

const NOWHERE: InboxTotals = { unread: 0, unseen: 0, total: 0 }

export const firstOf = (one: string | null, other: string | null): string | null =>
  one === null || other === null ? (one ?? other) : one < other ? one : other

/** The totals of an inbox. One that never had a message has none. */
export async function countsIn(
  db: Reader,
  subscriber_id: string,
): Promise<InboxTotals & { last_seq: number }> {
  const [row] = await findInboxes(db, { ids: [subscriber_id] })
  return row ? { ...countsOf(row), last_seq: row.last_seq } : { ...NOWHERE, last_seq: 0 }
}

/** The number of unread messages by inbox. */
export async function unreadIn(db: Reader, ids: string[]): Promise<Map<string, number>> {
  const rows = await findInboxes(db, { ids })
  return new Map(rows.map(({ id, unread }) => [id, unread]))
}

/** Categories of one answer. */
const MOST_CATEGORIES = 200

/** Unread messages by category, without those that have none. */
export async function unreadByCategory(
  db: Reader,
  subscriber_id: string,
): Promise<Record<string, number>> {
  const ours = and(eq(inboxCategories.subscriber_id, subscriber_id), gt(inboxCategories.unread, 0))
  const rows = db.select().from(inboxCategories).where(ours).orderBy(inboxCategories.category)
  const found = await rows.limit(MOST_CATEGORIES)
  return Object.fromEntries(found.map(({ category, unread }) => [category, unread]))
}

export const findInboxes = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select()
    .from(inboxes)
    .where(isAmong(db, inboxes.id, slot.ids)),
)

const findForUpdate = prepared({ ids: idList }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select()
      .from(inboxes)
      .where(isAmong(tx, inboxes.id, slot.ids))
      .orderBy(inboxes.id),
  ),
)

const insertInboxes = newRowInserter(inboxes, "id")

const updateInboxes = updater(inboxes, {
  where: ["id"],
  set: ["last_seq", "unread", "unseen", "total"],
  clear: [],
})

const insertEntries = inserter(inboxEntries)

const updateEntries = updater(inboxEntries, {
  where: ["id"],
  set: [
    ...([
      "content_id",
      "seq",
      "category",
      "collapse_key",
      "seen_at",
      "read_at",
      "archived_at",
    ] as const),
    ...(["snoozed_until", "expires_at", "wakes_at", "completed", "told", "updated_at"] as const),
  ],
  clear: [],
})

const removeEntries = remover(inboxEntries, ["id"])

const addToCategories = adder(inboxCategories, ["subscriber_id", "category"], ["unread"], 1)

const insertChanges = inserter(inboxChanges)

export const ofInbox = (subscriber_id: string) => eq(inboxEntries.subscriber_id, subscriber_id)

/** As literals: a bound value would keep the database from using the partial indexes. */
export const IN_SIGHT = sql`archived_at IS NULL AND snoozed_until IS NULL`
export const UNREAD = sql`read_at IS NULL AND archived_at IS NULL AND snoozed_until IS NULL`
export const ARCHIVED = sql`archived_at IS NOT NULL`
export const SNOOZED = sql`snoozed_until IS NOT NULL`
