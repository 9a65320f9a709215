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

export const isTracked = ({ envelope }: Pick<Message, "envelope">): boolean =>
  envelope?.track !== undefined

/** By message; a message without hits is not in it. Asks nothing where no message is tracked. */
export async function summaries(
  db: Reader,
  list: TrackedMessage[],
): Promise<Map<string, HitSummary>> {
  const ids = list.filter(isTracked).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const rows = await db
    .select({
      message_id: messageTracking.message_id,
      open_count: messageTracking.open_human,
      click_count: messageTracking.click_human,
      opened_at: messageTracking.opened_at,
      last_opened_at: messageTracking.last_opened_at,
      clicked_at: messageTracking.clicked_at,
      last_clicked_at: messageTracking.last_clicked_at,
    })
    .from(messageTracking)
    .where(inArray(messageTracking.message_id, ids))
  return new Map(rows.map(({ message_id, ...summary }) => [message_id, summary]))
}

/** The statistics of one message (contract 20, section 2). The caller has found it in its project. */
export async function statistics(db: Reader, { id, envelope }: TrackedMessage) {
  const [row] = await db.select().from(messageTracking).where(eq(messageTracking.message_id, id))
  const links = await db
    .select({
      url: trackingLinks.url,
      total: trackingLinks.total,
      unique: trackingLinks.unique,
      human: trackingLinks.human,
      last_at: trackingLinks.last_at,
    })
    .from(trackingLinks)
    .where(eq(trackingLinks.message_id, id))
    .orderBy(desc(trackingLinks.total), trackingLinks.link)
    .limit(MOST_LINKS)
  return {
    email_id: id,
    track_opens: envelope?.track?.opens ?? false,
    track_clicks: envelope?.track?.clicks ?? false,
    opens: {
      total: row?.open_total ?? 0,
      unique: row?.open_unique ?? 0,
      human: row?.open_human ?? 0,
      machine: row?.open_machine ?? 0,
      first_at: row?.open_first_at ?? null,
      last_at: row?.open_last_at ?? null,
    },
    clicks: {
      total: row?.click_total ?? 0,
      unique: row?.click_unique ?? 0,
      human: row?.click_human ?? 0,
      machine: row?.click_machine ?? 0,
      first_at: row?.click_first_at ?? null,
      last_at: row?.click_last_at ?? null,
    },
    links,
    recent: (row?.recent ?? []).map(({ visitor: _, ...hit }) => hit),
  }
}
