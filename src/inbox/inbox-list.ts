import { and, eq, exists, type SQL, sql } from "drizzle-orm"
import type { Page } from "../http/page"
import { messages, messageTags } from "../messages/tables"
import { isAskedId } from "../store/columns"
import { boundedList, type IdSource, type ListWindow } from "../store/rows"
import type { Reader } from "../store/store"
import { hasExpired } from "./inbox"
import { ARCHIVED, countsIn, IN_SIGHT, SNOOZED, UNREAD } from "./ledger"
import { type InboxEntry, inboxEntries } from "./tables"

/** The states by which a project finds messages. */
export const INBOX_STATES = ["unseen", "seen", "read", "archived", "snoozed"] as const

/** What a subscriber looks at. */
export const INBOX_FILTERS = ["all", "unread", "archived", "snoozed"] as const

export interface InboxFilter {
  /** Whose messages; without it those of the whole project. An id that nobody has finds none. */
  subscriber_id?: string | undefined
  state?: (typeof INBOX_STATES)[number] | undefined
  filter?: (typeof INBOX_FILTERS)[number] | undefined
  category?: string | undefined
  tag?: string | undefined
}

const STATES: Record<(typeof INBOX_STATES)[number], SQL> = {
  unseen: sql`seen_at IS NULL AND ${IN_SIGHT}`,
  seen: sql`seen_at IS NOT NULL AND ${UNREAD}`,
  read: sql`read_at IS NOT NULL AND ${IN_SIGHT}`,
  archived: ARCHIVED,
  snoozed: SNOOZED,
}

const FILTERS: Record<(typeof INBOX_FILTERS)[number], SQL> = {
  all: IN_SIGHT,
  unread: UNREAD,
  archived: ARCHIVED,
  snoozed: SNOOZED,
}

/** Of the states, the part that an index of an inbox knows. */
const INDEXED: Record<(typeof INBOX_STATES)[number], SQL> = {
  ...{ unseen: UNREAD, seen: UNREAD, read: IN_SIGHT },
  ...{ archived: ARCHIVED, snoozed: SNOOZED },
}

/** The messages of a project or of one inbox, newest first. */
export async function list(
  db: Reader,
  project_id: string,
  asked: InboxFilter,
  window: ListWindow,
): Promise<Page<InboxEntry>> {
  const found = boundedList<InboxEntry>(db, {
    owner: project_id,
    table: inboxEntries,
    ...placeOf(db, project_id, asked),
  })
  const { rows, end } = await found.list(window)
  const total = () => totalOf(db, asked, found.total)
  const alive = rows.filter((row) => !hasExpired(row))
  // A full page that lacks one is still followed by another.
  const is_short = rows.length === window.limit && alive.length < rows.length
  return { rows: alive, end: is_short ? rows.at(-1)?.id : end, total }
}

function placeOf(db: Reader, project_id: string, asked: InboxFilter) {
  const { subscriber_id, state, filter, category, tag } = asked
  const rest = and(
    category === undefined ? undefined : eq(inboxEntries.category, category),
    tag === undefined ? undefined : exists(tagged(db, project_id, tag)),
  )
  if (subscriber_id === undefined) {
    const along: IdSource = {
      rows: messages,
      id: messages.id,
      where: and(eq(messages.project_id, project_id), eq(messages.channel, "in_app")),
    }
    return { along, filter: and(rest, state && STATES[state]) }
  }
  const indexed = (filter && FILTERS[filter]) ?? (state && INDEXED[state])
  // The id is what somebody asked for: it may be of another project.
  const ours = eq(inboxEntries.project_id, project_id)
  const where = and(isAskedId(inboxEntries.subscriber_id, subscriber_id), ours, indexed)
  const along: IdSource = { rows: inboxEntries, id: inboxEntries.id, where }
  const is_known = state === undefined || INDEXED[state] === STATES[state]
  return { along, filter: is_known ? rest : and(rest, STATES[state]) }
}

const tagged = (db: Reader, project_id: string, tag: string) =>
  db
    .select({ one: sql`1` })
    .from(messageTags)
    .where(
      and(
        eq(messageTags.project_id, project_id),
        eq(messageTags.tag, tag),
        eq(messageTags.message_id, inboxEntries.id),
      ),
    )

/** The totals of an inbox are kept; everything else is counted, as far as that is bounded. */
async function totalOf(
  db: Reader,
  { subscriber_id, filter, category, tag }: InboxFilter,
  counted: () => Promise<number | null>,
): Promise<number | null> {
  const is_plain = category === undefined && tag === undefined
  if (subscriber_id === undefined || !is_plain) return counted()
  if (filter !== "all" && filter !== "unread") return counted()
  const { total, unread } = await countsIn(db, subscriber_id)
  return filter === "all" ? total : unread
}
