import { and, asc, eq, gt, inArray, isNull, ne, or, type SQL, sql } from "drizzle-orm"
import { IN_SIGHT, type InboxTotals } from "../inbox/ledger"
import { inboxCategories, inboxEntries, inboxes } from "../inbox/tables"
import { type ChannelName, messages } from "../messages/tables"
import { inPages } from "../store/in-steps"
import type { Reader } from "../store/store"
import { rangesOf } from "./counted-rows"

/** Messages of one step. */
const STEP = 500

/** Inboxes of one look. */
const INBOXES = 100

const IN_APP: ChannelName = "in_app"

type Pause = () => Promise<void>

/** A message or an inbox, and what is wrong with it, in words. */
export interface WrongInbox {
  project_id: string
  id: string
  what: string
}

/** The inboxes of all projects whose totals differ from their messages. */
export async function* wrongInboxes(db: Reader, pause: Pause): AsyncGenerator<WrongInbox> {
  const next = (after: string) =>
    db.select().from(inboxes).where(gt(inboxes.id, after)).orderBy(asc(inboxes.id)).limit(INBOXES)
  for await (const rows of inPages(INBOXES, next, { pause }))
    for (const some of inGroups(rows)) yield* wrongAmong(db, some, pause)
}

/** Together they have few messages. One that has many is alone, because an index has its messages in their order. */
function inGroups(rows: InboxRow[]): InboxRow[][] {
  const groups: InboxRow[][] = []
  let left = Number.NEGATIVE_INFINITY
  for (const row of rows) {
    if (row.total > left) {
      groups.push([])
      left = STEP
    }
    groups.at(-1)?.push(row)
    left -= row.total
  }
  return groups
}

async function* wrongAmong(db: Reader, rows: InboxRow[], pause: Pause): AsyncGenerator<WrongInbox> {
  const ids = rows.map(({ id }) => id)
  const found = await totalsOf(db, ids, pause)
  const told = await unreadOf(db, ids)
  for (const { id, project_id, unread, unseen, total } of rows) {
    const [is, should] = [{ unread, unseen, total }, found.totals.get(id) ?? NOTHING]
    if (!Bun.deepEquals(is, should)) {
      const what = `The totals of an inbox are ${JSON.stringify(is)}, but its messages give ${JSON.stringify(should)}.`
      yield { project_id, id, what }
    }
    const [shown, counted] = [told.get(id) ?? {}, found.categories.get(id) ?? {}]
    if (Bun.deepEquals(shown, counted)) continue
    const what = `The unread messages of an inbox by category are ${JSON.stringify(shown)}, but there are ${JSON.stringify(counted)}.`
    yield { project_id, id, what }
  }
}

type InboxRow = typeof inboxes.$inferSelect

const NOTHING: InboxTotals = { unread: 0, unseen: 0, total: 0 }

/** Unread messages by inbox and category. */
type ByCategory = Map<string, Record<string, number>>

/** The totals and categories that the messages give, by inbox. It reads in steps. */
async function totalsOf(db: Reader, ids: string[], pause: Pause) {
  const { id, subscriber_id, category, read_at, seen_at } = inboxEntries
  const numberOf = (which: SQL) =>
    sql<number>`sum(CASE WHEN ${which} THEN 1 ELSE 0 END)`.mapWith(Number)
  const sums = {
    ...{ subscriber_id, category, total: numberOf(sql`1 = 1`) },
    ...{ unread: numberOf(isNull(read_at)), unseen: numberOf(isNull(seen_at)) },
  }
  const totals = new Map<string, InboxTotals>()
  const categories: ByCategory = new Map()
  const where = and(inArray(subscriber_id, ids), IN_SIGHT)
  for await (const { rows } of rangesOf(db, id, { where, step: STEP, pause })) {
    const some = db.select(sums).from(inboxEntries).where(rows)
    for (const row of await some.groupBy(subscriber_id, category)) {
      const { subscriber_id: owner } = row
      const known = totals.get(owner) ?? NOTHING
      totals.set(owner, {
        unread: known.unread + row.unread,
        unseen: known.unseen + row.unseen,
        total: known.total + row.total,
      })
      if (row.category !== null) note(categories, owner, row.category, row.unread)
    }
  }
  return { totals, categories }
}

async function unreadOf(db: Reader, ids: string[]): Promise<ByCategory> {
  const { subscriber_id } = inboxCategories
  const told: ByCategory = new Map()
  for (const row of await db.select().from(inboxCategories).where(inArray(subscriber_id, ids)))
    note(told, row.subscriber_id, row.category, row.unread)
  return told
}

/** Without those that are 0, which may have no row. */
function note(all: ByCategory, owner: string, category: string, unread: number) {
  const sums = { ...all.get(owner) }
  sums[category] = (sums[category] ?? 0) + unread
  if (sums[category] === 0) delete sums[category]
  all.set(owner, sums)
}

/** Messages of a project that are not in the inbox of their subscriber, or have a number that it never gave. */
export async function* outsideInboxes(
  db: Reader,
  project_id: string,
  pause: Pause,
): AsyncGenerator<WrongInbox> {
  const { id, channel, subscriber_id } = messages
  const ours = and(eq(messages.project_id, project_id), eq(channel, IN_APP))
  const isOutside = or(
    isNull(inboxes.id),
    isNull(inboxEntries.id),
    ne(inboxEntries.subscriber_id, subscriber_id),
    gt(inboxEntries.seq, inboxes.last_seq),
  )
  for await (const { rows } of rangesOf(db, id, { where: ours, step: STEP, pause })) {
    const some = db
      .select({ id })
      .from(messages)
      .leftJoin(inboxEntries, eq(inboxEntries.id, id))
      .leftJoin(inboxes, eq(inboxes.id, subscriber_id))
    for (const row of await some.where(and(rows, isOutside)))
      yield { project_id, id: row.id, what: "The message is not in the inbox of its subscriber." }
  }
}
