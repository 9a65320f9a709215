import { inArray } from "drizzle-orm"
import { now } from "../core/time"
import { emitAll } from "../events/emit"
import { eventsOf } from "../messages/event-data"
import { messages } from "../messages/tables"
import { forUpdate } from "../store/columns"
import type { Tx } from "../store/store"
import { subscribers } from "../subscribers/tables"
import { countFacts, type InboxFact } from "./inbox-stats"
import type { InboxLedger } from "./ledger"
import { type InboxEntry, inboxEntries } from "./tables"

export const MARKS = ["read", "unread", "seen", "archived", "unarchived"] as const

export type Mark = (typeof MARKS)[number]

export const isMark = (word: string): word is Mark => MARKS.some((mark) => mark === word)

/** What becomes of a message by a mark; undefined where nothing does. Read implies seen. */
export function markedAs(
  { read_at, seen_at, archived_at }: InboxEntry,
  mark: Mark,
  at: string,
): Partial<InboxEntry> | undefined {
  if (mark === "read") return read_at === null ? { read_at: at, seen_at: seen_at ?? at } : undefined
  if (mark === "unread") return read_at === null ? undefined : { read_at: null }
  if (mark === "seen") return seen_at === null ? { seen_at: at } : undefined
  if (mark === "archived") return archived_at === null ? { archived_at: at } : undefined
  return archived_at === null ? undefined : { archived_at: null }
}

const TOLD = { seen: 1, read: 2, archived: 4 } as const

type ToldFact = keyof typeof TOLD

/** A fact that became true of a message, or an action of it that was used. */
interface InboxFactTold {
  entry: InboxEntry
  fact: ToldFact | "action" | "expired"
  action_key?: string
}

/**
 * The changes with what they make true for the first time. What is read at once was seen, too: that is counted, and only
 * the reading is told.
 */
function withFacts(before: InboxEntry, changes: Partial<InboxEntry>) {
  const after = { ...before, ...changes }
  const is_true = {
    seen: after.seen_at !== null,
    read: after.read_at !== null,
    archived: after.archived_at !== null,
  }
  const fresh = (Object.keys(TOLD) as ToldFact[]).filter(
    (fact) => is_true[fact] && (before.told & TOLD[fact]) === 0,
  )
  const told = fresh.reduce((sum, fact) => sum | TOLD[fact], before.told)
  const facts = fresh.filter((fact) => fact !== "seen" || !fresh.includes("read"))
  return { changes: { ...changes, told }, counted: fresh, facts }
}

/** Collects what becomes true while a transaction changes inboxes, and tells it in the end. */
export class InboxFacts {
  readonly #facts: InboxFactTold[] = []
  readonly #counted: { project_id: string; fact: InboxFact }[] = []

  /** Changes one message, and keeps in mind what is new of it. */
  change(ledger: InboxLedger, before: InboxEntry, given: Partial<InboxEntry>): InboxEntry {
    const changes = this.#noted(before, given)
    return ledger.change(before, changes)
  }

  /** The same for one of many that change together. */
  within(ledger: InboxLedger, before: InboxEntry, given: Partial<InboxEntry>, seq: number): void {
    ledger.within(before, this.#noted(before, given), seq)
  }

  note(fact: InboxFactTold): void {
    this.#facts.push(fact)
  }

  #noted(before: InboxEntry, given: Partial<InboxEntry>): Partial<InboxEntry> {
    const { changes, counted, facts } = withFacts(before, given)
    const { project_id } = before
    for (const fact of counted) this.#counted.push({ project_id, fact })
    for (const fact of facts) this.#facts.push({ entry: before, fact })
    return changes
  }

  /** Writes the events and the counts. */
  async tell(tx: Tx): Promise<void> {
    if (this.#counted.length > 0) await countFacts(tx, this.#counted)
    if (this.#facts.length === 0) return
    const ids = [...new Set(this.#facts.map(({ entry }) => entry.id))]
    const people = [...new Set(this.#facts.map(({ entry }) => entry.subscriber_id))]
    const rows = await tx.select(SUBJECT).from(messages).where(inArray(messages.id, ids))
    const { id, external_id } = subscribers
    const named = await tx.select({ id, external_id }).from(subscribers).where(inArray(id, people))
    const rowOf = new Map(rows.map((row) => [row.id, row]))
    const nameOf = new Map(named.map((row) => [row.id, row.external_id]))
    const at = now()
    await emitAll(
      tx,
      this.#facts.flatMap(({ entry, fact, action_key }) => {
        const message = rowOf.get(entry.id)
        if (!message) return []
        const external_id = nameOf.get(entry.subscriber_id) ?? ""
        const by = { external_id, ...(action_key !== undefined && { action_key }) }
        return eventsOf(message, { type: fact, address: entry.subscriber_id, by }, at)
      }),
    )
  }
}

const { id, account_id, project_id, channel, tags, metadata, subject, subscriber_id, category } =
  messages

const SUBJECT = {
  ...{ id, account_id, project_id, channel, tags, metadata, subject, subscriber_id, category },
}

/** The entries of an inbox with these ids, held in the order of the ids. */
export const entriesForUpdate = (tx: Tx, ids: string[]): Promise<InboxEntry[]> =>
  forUpdate(
    tx.select().from(inboxEntries).where(inArray(inboxEntries.id, ids)).orderBy(inboxEntries.id),
  ) as unknown as Promise<InboxEntry[]>
