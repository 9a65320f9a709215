import { desc, eq, inArray } from "drizzle-orm"
import type { Message } from "../messages/status-changes"
import type { Reader } from "../store/store"
import { messageTracking, trackingLinks } from "./tables"

/** Links that are shown of a message: those that were followed most. */
const MOST_LINKS = 200

/** What the record of an email tells of its hits. Only people count. */
export interface HitSummary {
  open_count: number
  click_count: number
  opened_at: string | null
  last_opened_at: string | null
  clicked_at: string | null
  last_clicked_at: string | null
}

export const NO_HITS: HitSummary = {
  open_count: 0,
  click_count: 0,
  opened_at: null,
  last_opened_at: null,
  clicked_at: null,
  last_clicked_at: null,
}

type TrackedMessage = Pick<Message, "id" | "envelope">

const isTracked = ({ envelope }: Pick<Message, "envelope">): boolean =>
  envelope?.track !== undefined

/** By message; a message without hits is not in it. Asks nothing where no message is tracked. */
export async function summaries(
  db: Reader,
  list: TrackedMessage[],
): Promise<Map<string, HitSummary>> {
  const ids = list.filter(isTracked).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const { message_id, open_human: open_count, click_human: click_count } = messageTracking
  const { opened_at, last_opened_at, clicked_at, last_clicked_at } = messageTracking
  const counts = { message_id, open_count, click_count }
  const rows = await db
    .select({ ...counts, opened_at, last_opened_at, clicked_at, last_clicked_at })
    .from(messageTracking)
    .where(inArray(message_id, ids))
  return new Map(rows.map(({ message_id, ...summary }) => [message_id, summary]))
}

/** The statistics of one message (contract 20, section 2). The caller has found it in its project. */
export async function statistics(db: Reader, { id, envelope }: TrackedMessage) {
  const [row] = await db.select().from(messageTracking).where(eq(messageTracking.message_id, id))
  const { message_id, link, url, total, unique, human, last_at } = trackingLinks
  const links = await db
    .select({ url, total, unique, human, last_at })
    .from(trackingLinks)
    .where(eq(message_id, id))
    .orderBy(desc(total), link)
    .limit(MOST_LINKS)
  return {
    email_id: id,
    track_opens: envelope?.track?.opens ?? false,
    track_clicks: envelope?.track?.clicks ?? false,
    opens: hitsOf(row, "open"),
    clicks: hitsOf(row, "click"),
    links,
    recent: (row?.recent ?? []).map(({ visitor: _, ...hit }) => hit),
  }
}

const hitsOf = (row: typeof messageTracking.$inferSelect | undefined, type: "open" | "click") => ({
  total: row?.[`${type}_total`] ?? 0,
  unique: row?.[`${type}_unique`] ?? 0,
  human: row?.[`${type}_human`] ?? 0,
  machine: row?.[`${type}_machine`] ?? 0,
  first_at: row?.[`${type}_first_at`] ?? null,
  last_at: row?.[`${type}_last_at`] ?? null,
})
