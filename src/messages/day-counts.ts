import { and, eq, gte, lt, type SQL, sql, sum } from "drizzle-orm"
import { dayOf } from "../core/time"
import { dayPurge } from "../store/old-days"
import { adder } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { countsByKind, type Message } from "./status-changes"
import { type ChannelName, messageDays, messages } from "./tables"

/** On Postgres, where several nodes write at once. */
const SHARDS = 8

/** What the counts know of a message. */
type CountedMessage = Pick<
  Message,
  | "project_id"
  | "channel"
  | "created_at"
  | "status"
  | "status_reason"
  | "provider"
  | "sender"
  | "units"
  | "recipients"
>

/** A message that the counts of its day gain (1) or lose (-1). */
interface DayCount {
  message: CountedMessage
  by: 1 | -1
}

/**
 * Counts messages of channels that have counts by day, by that of their acceptance, in the transaction that changes
 * them.
 */
export const countByDay = (tx: Tx, list: DayCount[]): Promise<void> =>
  addTo(
    tx,
    list.map(({ message, by }) => counted(message, message.provider, by)),
  )

/** Named one by one: a copy of each whole message costs more than its counts. */
const counted = (message: CountedMessage, provider: string | null, by: 1 | -1) => ({
  project_id: message.project_id,
  channel: message.channel,
  day: dayOf(message.created_at),
  status: message.status,
  provider: countsByKind(message.channel) ? kindOf(message, provider) : (provider ?? ""),
  messages: by,
  units: by * (message.units ?? message.recipients.length),
})

/** Three words, of which any may be empty: the provider, the kind (`sender`), and why it failed. */
const kindOf = ({ sender, status, status_reason }: CountedMessage, provider: string | null) =>
  [provider ?? "", sender ?? "", FAILED.has(status) ? (status_reason ?? "") : ""].join(" ")

const FAILED = new Set<Message["status"]>(["failed", "undelivered"])

/** The same of rows, for a recount. */
export function countedProvider(channel: ChannelName): SQL<string> {
  const { provider, sender, status, status_reason } = messages
  const known = sql<string>`COALESCE(${provider}, '')`
  if (!countsByKind(channel)) return known
  // As literals: Postgres groups by an expression only where its values are known to be the same.
  const has_failed = sql`${status} IN (${sql.raw([...FAILED].map((one) => `'${one}'`).join(", "))})`
  const why = sql`CASE WHEN ${has_failed} THEN COALESCE(${status_reason}, '') ELSE '' END`
  return sql<string>`${known} || ' ' || COALESCE(${sender}, '') || ' ' || ${why}`
}

interface DayMove {
  before: CountedMessage
  after: CountedMessage
  /** The provider of the row, where it is not that of `before`. */
  asked_before?: string | null
}

/** The same for messages whose status or provider may have changed. */
export const moveByDay = (tx: Tx, list: DayMove[]): Promise<void> =>
  addTo(
    tx,
    list.flatMap(({ before, after, asked_before = before.provider }) => [
      counted(before, asked_before, -1),
      counted(after, after.provider, 1),
    ]),
  )

const addTo = adder(
  messageDays,
  ["project_id", "channel", "day", "status", "provider"],
  ["messages", "units"],
  SHARDS,
)

interface DaysQuery {
  project_id: string
  channel: ChannelName
  /** `YYYY-MM-DD`. Without `before` all days since then. */
  from: string
  before?: string
}

/** The counts of some days, one row a day, status and provider; `""` is none. */
export async function dayCounts(db: Reader, { project_id, channel, from, before }: DaysQuery) {
  const { day, status, provider, messages, units } = messageDays
  const ours = and(
    eq(messageDays.project_id, project_id),
    eq(messageDays.channel, channel),
    gte(day, from),
    before === undefined ? undefined : lt(day, before),
  )
  const sums = { messages: sum(messages).mapWith(Number), units: sum(units).mapWith(Number) }
  return db
    .select({ day, status, provider, ...sums })
    .from(messageDays)
    .where(ours)
    .groupBy(day, status, provider)
}

/** Removes up to 200 counts of days long past. Returns how many went. */
export const purgeMessageDays = dayPurge(messageDays, [
  ...(["project_id", "channel", "day", "status", "provider", "shard"] as const),
])
