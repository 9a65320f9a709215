import { and, asc, eq, isNotNull, isNull, lt } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import { forUpdate } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { IN_SIGHT, InboxLedger, ofInbox, UNREAD } from "./ledger"
import { InboxFacts, markedAs } from "./marks"
import { type BulkKind, type BulkScope, type InboxEntry, inboxEntries } from "./tables"

/** Messages of one transaction. */
const AT_ONCE = 500

/** The request itself goes on until all are done. A job looks whether it came so far. */
const GUARD_SECONDS = 60

/** A change of all messages of an inbox that there were: those with a smaller number than its own. */
interface BulkMark {
  project_id: string
  subscriber_id: string
  kind: BulkKind
  scope: BulkScope
  upto_seq: number
}

export const inboxMarked: JobKind<BulkMark> = {
  name: "inbox.marked",
  schedule: (attempt) => Math.min(attempt * 10, 600),
}

/**
 * Marks everything in the inbox, in steps where there is much. Its followers are told at once, by the first
 * one. Resolves with how many messages changed.
 */
export async function markAll(
  store: Store,
  inbox: Pick<BulkMark, "project_id" | "subscriber_id">,
  kind: BulkKind,
  scope: BulkScope,
): Promise<number> {
  const { changed, mark } = await store.tx((tx) => begin(tx, inbox, kind, scope))
  return changed === AT_ONCE && mark ? changed + (await finish(store, mark)) : changed
}

/** What a crash left of it. */
export const markRest = (store: Store): JobHandler<BulkMark> => ({
  async run(mark) {
    await finish(store, mark)
    return {}
  },
})

async function begin(
  tx: Tx,
  inbox: Pick<BulkMark, "project_id" | "subscriber_id">,
  kind: BulkKind,
  scope: BulkScope,
) {
  const { project_id, subscriber_id } = inbox
  const ledger = await InboxLedger.open(tx, project_id, [subscriber_id])
  const some = await concerned(tx, subscriber_id, kind, scope)
  if (some.length === 0) return { changed: 0 } // nothing changed, so nothing takes a number
  const mark = { ...inbox, kind, scope, upto_seq: ledger.begin(subscriber_id, kind, scope) }
  await change(tx, ledger, some, kind)
  if (some.length === AT_ONCE) {
    const run_at = secondsFromNow(GUARD_SECONDS)
    await enqueue(tx, inboxMarked, { payload: mark, project_id, run_at })
  }
  return { changed: some.length, mark }
}

async function finish(store: Store, mark: BulkMark): Promise<number> {
  const { project_id, subscriber_id, kind, scope, upto_seq } = mark
  for (let changed = 0; ; ) {
    const step = await store.tx(async (tx) => {
      const ledger = await InboxLedger.open(tx, project_id, [subscriber_id])
      const some = await concerned(tx, subscriber_id, kind, scope, upto_seq)
      if (some.length === 0) return 0
      ledger.recount(subscriber_id)
      await change(tx, ledger, some, kind)
      return some.length
    })
    changed += step
    if (step < AT_ONCE) return changed
  }
}

async function change(tx: Tx, ledger: InboxLedger, some: InboxEntry[], kind: BulkKind) {
  const facts = new InboxFacts()
  const at = now()
  for (const entry of some) {
    const changes = markedAs(entry, kind, at)
    if (changes) facts.within(ledger, entry, changes)
  }
  await ledger.close()
  await facts.tell(tx)
}

/** The next messages that it concerns, and that are not so yet. What is snoozed or archived is out of its sight. */
async function concerned(
  tx: Tx,
  subscriber_id: string,
  kind: BulkKind,
  { category, before, read_only }: BulkScope,
  upto_seq?: number,
): Promise<InboxEntry[]> {
  const { id, seq, seen_at, read_at, created_at } = inboxEntries
  const rows = tx
    .select()
    .from(inboxEntries)
    .where(
      and(
        ofInbox(subscriber_id),
        kind === "archived" ? IN_SIGHT : UNREAD,
        kind === "seen" ? isNull(seen_at) : undefined,
        category === undefined ? undefined : eq(inboxEntries.category, category),
        before === undefined ? undefined : lt(created_at, before),
        read_only && isNotNull(read_at),
        upto_seq === undefined ? undefined : lt(seq, upto_seq),
      ),
    )
    .orderBy(asc(id))
    .limit(AT_ONCE)
  return forUpdate(rows)
}
