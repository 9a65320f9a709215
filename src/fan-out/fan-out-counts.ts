import { AUDIENCE_CHANNELS, type AudienceChannel } from "../lib/preferences"
import { SKIP_REASONS, type SkipReason } from "../messages/planner"
import { type Totals, totalsOf } from "../store/counters"
import type { Reader } from "../store/store"
import type { FanOutRow } from "./tables"

interface ChannelCounts {
  planned: number
  sent: number
  skipped: Record<SkipReason, number>
  failed: number
}

/** Recipients that the walk has met. The rest of the audience left before it came. */
export const FOUND = "found"

export const sentName = (channel: AudienceChannel) => `${channel}.sent`

export const skippedName = (channel: AudienceChannel, reason: SkipReason) =>
  `${channel}.skipped.${reason}`

/** What settling counts (`messages/change.ts`). */
const failedName = (channel: AudienceChannel) => `${channel}.failed`

const NAMES = [
  FOUND,
  ...AUDIENCE_CHANNELS.flatMap((channel) => [
    sentName(channel),
    failedName(channel),
    ...SKIP_REASONS.map((reason) => skippedName(channel, reason)),
  ]),
]

export async function countsOf(
  db: Reader,
  rows: Pick<FanOutRow, "id" | "audience" | "channels">[],
): Promise<Map<string, Partial<Record<AudienceChannel, ChannelCounts>>>> {
  const ids = rows.map(({ id }) => id)
  const totals = await totalsOf(db, ids, NAMES)
  return new Map(
    rows.map(({ id, audience, channels }) => {
      const sums = totals.get(id) ?? new Map()
      const counts = channels.map((channel) => [channel, channelCounts(sums, channel, audience)])
      return [id, Object.fromEntries(counts)]
    }),
  )
}

function channelCounts(
  sums: Totals,
  channel: AudienceChannel,
  audience: number | null,
): ChannelCounts {
  const countOf = (name: string) => sums.get(name) ?? 0
  const skipped = SKIP_REASONS.map((reason) => [reason, countOf(skippedName(channel, reason))])
  return {
    planned: audience ?? 0,
    sent: countOf(sentName(channel)),
    skipped: Object.fromEntries(skipped),
    failed: countOf(failedName(channel)),
  }
}

export async function foundOf(db: Reader, id: string): Promise<number> {
  const totals = await totalsOf(db, [id], [FOUND])
  return totals.get(id)?.get(FOUND) ?? 0
}
