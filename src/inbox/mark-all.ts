import { and, asc, gt, type SQL, sql } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import type { Store, Tx } from "../store/store"
import { IN_SIGHT, InboxLedger, ofInbox, SNOOZED, UNREAD } from "./ledger"
import { entriesForUpdate, InboxFacts, markedAs } from "./marks"
import { type BulkKind, type BulkScope, type InboxEntry, inboxEntries } from "./tables"

/** Messages that one transaction looks at. */
const AT_ONCE = 500

/** The request itself comes to the end. A job looks whether it did. */
const GUARD_SECONDS = 60

interface MarkedInbox {
  project_id: string
  subscriber_id: string
}

/** A change of all messages of an inbox that there were: those with a smaller number than its own. */
interface BulkMark extends MarkedInbox {
  kind: BulkKind
  scope: BulkScope
  upto_seq: number
}

export const inboxMarked: JobKind<BulkMark> = {
  name: "inbox.marked",
  schedule: (attempt) => Math.min(attempt * 10, 600),
}

/** The indexes along which it finds what it concerns. */
const UNREAD_ASIDE = sql`read_at IS NULL AND (archived_at IS NOT NULL OR snoozed_until IS NOT NULL)`
const ALONG: Record<BulkKind, SQL[]> = {
  read: [UNREAD, UNREAD_ASIDE],
  seen: [UNREAD, UNREAD_ASIDE],
  archived: [IN_SIGHT, SNOOZED],
}

/**
 * Marks everything in an inbox, also what is archived or snoozed, in steps where there is much. Its followers are told
 * with the first step. Resolves with how many messages changed.
 */
export async function markAll(
  store: Store,
  { project_id, subscriber_id }: MarkedInbox,
  kind: BulkKind,
  scope: BulkScope,
): Promise<number> {
  return walk(store, { project_id, subscriber_id, kind, scope, upto_seq: 0 })
}

/** What a crash left of it. */
export const markRest = (store: Store): JobHandler<BulkMark> => ({
  async run(mark) {
    await walk(store, mark)
    return {}
  },
})

/** How far each of the indexes was walked; undefined: to its end. */
type Places = (string | undefined)[]

async function walk(store: Store, mark: BulkMark): Promise<number> {
  const beginnings: Places = ALONG[mark.kind].map(() => "")
  let { upto_seq } = mark
  let changed = 0
  let places = beginnings
  for (let is_first = true; places.some((place) => place !== undefined); is_first = false) {
    const from = places
    const step = await store.tx((tx) => markSome(tx, { ...mark, upto_seq }, from))
    // What was passed before it had its number may have changed since: it is looked at again.
    const begins_late = step.upto_seq !== upto_seq && !is_first
    places = begins_late ? beginnings : step.places
    upto_seq = step.upto_seq
    changed += step.changed
  }
  return changed
}

/** Marks those of the next messages of each index that it concerns. The first ones that change take the number. */
async function markSome(tx: Tx, mark: BulkMark, from: Places) {
  const { project_id, subscriber_id, kind, scope } = mark
  const { id } = inboxEntries
  // Held before it is looked at: no message comes in between, and has a smaller number.
  const ledger = await InboxLedger.open(tx, project_id, [subscriber_id])
  const ids: string[] = []
  const places: Places = []
  for (const [at, along] of ALONG[kind].entries()) {
    const after = from[at]
    const rows = tx.select({ id }).from(inboxEntries)
    const next = rows.where(and(ofInbox(subscriber_id), along, gt(id, after ?? "")))
    const some = after === undefined ? [] : await next.orderBy(asc(id)).limit(AT_ONCE)
    places.push(some.length < AT_ONCE ? undefined : some.at(-1)?.id)
    ids.push(...some.map((row) => row.id))
  }
  const found = ids.length > 0 ? await entriesForUpdate(tx, ids) : []
  const at = now()
  const some = found.flatMap((entry) => {
    const changes = isConcerned(entry, mark) ? markedAs(entry, kind, at) : undefined
    return changes ? [{ entry, changes }] : []
  })
  if (some.length === 0) return { changed: 0, places, upto_seq: mark.upto_seq }
  const is_first = mark.upto_seq === 0
  const upto_seq = is_first ? ledger.begin(subscriber_id, kind, scope) : mark.upto_seq
  if (is_first && places.some((place) => place !== undefined)) {
    const payload = { project_id, subscriber_id, kind, scope, upto_seq }
    await enqueue(tx, inboxMarked, { payload, project_id, run_at: secondsFromNow(GUARD_SECONDS) })
  }
  if (!is_first) ledger.recount(subscriber_id)
  const facts = new InboxFacts()
  for (const { entry, changes } of some) facts.within(ledger, entry, changes, upto_seq)
  await ledger.close()
  await facts.tell(tx)
  return { changed: some.length, places, upto_seq }
}

function isConcerned(
  { subscriber_id, category, created_at, read_at, seq }: InboxEntry,
  { scope, upto_seq, ...mark }: BulkMark,
): boolean {
  return (
    subscriber_id === mark.subscriber_id &&
    (scope.category === undefined || category === scope.category) &&
    (scope.before === undefined || created_at < scope.before) &&
    (!scope.read_only || read_at !== null) &&
    (upto_seq === 0 || seq < upto_seq)
  )
}
