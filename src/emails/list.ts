import { and, eq, exists, gte, inArray, lt, type SQL, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import type { ListWindow, Page } from "../http/page"
import { partOf } from "../lib/text"
import { messages, messageTags, type Status, type Stream } from "../messages/tables"
import { totals } from "../store/counters"
import { isAskedId } from "../store/id-filters"
import type { Reader } from "../store/store"
import { newestFirst } from "../store/stretch"
import { asTheyWait } from "./held-mail"
import { listed } from "./record"

export const STATUSES: Status[] = [
  "queued",
  "sending",
  "sent",
  "delivered",
  "bounced",
  "complained",
  "failed",
]

/** Addresses and the domain in the form in which they compare. */
export interface Filter {
  status?: Status
  to?: string
  from?: string
  tag?: string
  domain?: string
  subject?: string
  stream?: Stream
  batch_id?: string
  template_id?: string
  after: string | undefined
  before: string | undefined
}

/** The project's emails, newest first: ids rise with time, so the index is walked backwards. */
export async function list(db: Reader, project_id: string, filter: Filter, window: ListWindow) {
  const wanted = matching(db, project_id, filter)
  const { where, order } = newestFirst(messages.id, window)
  const rows = db.select().from(messages).where(and(wanted, where))
  const some = await rows.orderBy(order).limit(window.limit).offset(window.offset)
  const total = () => count(db, project_id, filter, wanted)
  const waiting = await asTheyWait(db, some)
  return { rows: waiting.map(listed), total } satisfies Page<object>
}

function matching(db: Reader, project_id: string, filter: Filter): SQL | undefined {
  const { status, to, from, tag, domain, subject, stream, batch_id, after, before } = filter
  return and(
    eq(messages.project_id, project_id),
    eq(messages.channel, "email"),
    status && eq(messages.status, status),
    to === undefined ? undefined : eq(messages.recipient, to),
    from === undefined ? undefined : eq(messages.sender, from),
    domain === undefined ? undefined : eq(messages.sender_domain, domain),
    subject === undefined ? undefined : contains(subject),
    stream && eq(messages.stream, stream),
    batch_id === undefined ? undefined : isAskedId(messages.batch_id, batch_id),
    filter.template_id === undefined ? undefined : sql`1 = 0`, // no message has a template yet
    tag === undefined ? undefined : exists(tagged(db, project_id, tag)),
    after === undefined ? undefined : gte(messages.created_at, after),
    before === undefined ? undefined : lt(messages.created_at, before),
    // The bounds once more as ids, which rise with time: so the index can skip what is outside.
    after === undefined ? undefined : gte(messages.id, firstIdAt(millisFrom(after) - SKEW)),
    before === undefined ? undefined : lt(messages.id, firstIdAt(millisFrom(before) + SKEW)),
  )
}

/** An id is made a little before or after the row's time is read. */
const SKEW = 60_000

const contains = (text: string) => sql`${messages.subject_key} LIKE ${partOf(text)} ESCAPE '\\'`

const tagged = (db: Reader, project_id: string, tag: string) =>
  db
    .select({ one: sql`1` })
    .from(messageTags)
    .where(
      and(
        eq(messageTags.project_id, project_id),
        eq(messageTags.tag, tag),
        eq(messageTags.message_id, messages.id),
      ),
    )

const SETTLED = ["sent", "delivered", "bounced", "complained", "failed"].map(
  (status) => `email.${status}`,
)

/** From the counters where they know it; other filters are counted as they are asked. */
async function count(db: Reader, project_id: string, filter: Filter, wanted: SQL | undefined) {
  const names = Object.entries(filter).filter(([, value]) => value !== undefined)
  const only = names.length === 1 ? filter.status : undefined
  if (names.length > 0 && !only) return countRows(db, wanted)

  const sums = await totals(db, project_id, ["email", ...SETTLED])
  if (!only) return sums.get("email") ?? 0
  const settled = sums.get(`email.${only}`)
  if (settled !== undefined) return settled
  const inHand = await countRows(db, sending(project_id)) // at most what the nodes do at once
  if (only === "sending") return inHand
  const done = SETTLED.reduce((sum, name) => sum + (sums.get(name) ?? 0), 0)
  return Math.max(0, (sums.get("email") ?? 0) - done - inHand)
}

const sending = (project_id: string) =>
  and(eq(messages.project_id, project_id), inArray(messages.status, ["sending"]))

async function countRows(db: Reader, wanted: SQL | undefined): Promise<number> {
  const [row] = await db.select({ n: sql<number>`count(*)` }).from(messages).where(wanted)
  return Number(row?.n ?? 0)
}
