import type { ApiError } from "../core/errors"
import type { ProjectSettings } from "../identity/tables"
import { frozenRefusal, type SendingCaller, throttledRefusal } from "../reputation/gate"
import type { Tx } from "../store/store"
import { giveBack, type QuotaAllowance, reserveEach, takeFromBucket } from "../tenancy/quotas"
import { admitBytes, type StoredShare } from "../tenancy/stored-share"
import { add } from "../tenancy/usage"
import type { NewMessage } from "./pipeline"
import { storedSizes } from "./stored-size"

/** A message to accept, and the quota of its channel that it is counted under; null counts nowhere. */
export interface MessageEntry {
  message: NewMessage
  /** Of an account that is not active. */
  standing?: SendingCaller | undefined
  allowance: (QuotaAllowance & { sends_per_second: number | null }) | null
  /** What its project may store; absent for mail of the instance itself. */
  share?: StoredShare
  /** The settings by which is decided whether its recipient gets it; absent where nothing is asked. */
  asking?: ProjectSettings | undefined
}

/** Requests of their own; or one request, of which each message stands for itself, or all or none. */
export type AcceptMode = "apart" | "permissive" | "strict"

/**
 * Takes messages of any channel from the quota and from the sends of a second, in the transaction that accepts
 * them. `countUsage` follows as its last step. Answers why an entry is refused: what the project may store (403),
 * the month's quota (402), the account's sending status (403, 429), then the sends of a second (429). An entry that is not in the answer is admitted.
 */
export async function admit(
  tx: Tx,
  list: MessageEntry[],
  mode: AcceptMode = "apart",
): Promise<Map<MessageEntry, ApiError>> {
  const refused = await refuseFull(tx, list, mode)
  await reserveAll(tx, list, mode, refused)
  await refuseByStatus(tx, list, mode, refused)
  await slowDown(tx, list, mode, refused)
  return refused
}

/**
 * Counts admitted messages as used. It is the last step of a transaction that accepts: one that waits for a
 * subscriber must not hold a count that others wait for.
 */
export const countUsage = (tx: Tx, admitted: MessageEntry[]): Promise<void> =>
  add(tx, admitted.filter(isCounted).map(usageOf))

/** Every recipient counts, copies included. */
const unitsOf = ({ message }: MessageEntry) => message.recipients.length

/** Asks nothing where the plan has no limit. */
async function refuseFull(tx: Tx, list: MessageEntry[], mode: AcceptMode) {
  const refused = new Map<MessageEntry, ApiError>()
  const limited = list.filter(({ share }) => (share?.limit_mb ?? null) !== null)
  if (limited.length === 0) return refused
  const sizes = storedSizes(limited.map(({ message }) => message))
  const bytes = new Map(limited.map((entry, at) => [entry, sizes[at]?.bytes ?? 0]))
  for (const entries of Map.groupBy(limited, ({ message }) => message.project_id).values()) {
    const share = entries[0]?.share
    const wishes = entries.map((entry) => bytes.get(entry) ?? 0)
    const whole = [wishes.reduce((sum, one) => sum + one, 0)]
    const refusals = share ? await admitBytes(tx, share, mode === "strict" ? whole : wishes) : []
    for (const [at, entry] of entries.entries()) {
      const refusal = refusals[mode === "strict" ? 0 : at]
      if (refusal) refused.set(entry, refusal)
    }
  }
  return refused
}

async function reserveAll(
  tx: Tx,
  all: MessageEntry[],
  mode: AcceptMode,
  refused: Map<MessageEntry, ApiError>,
) {
  const list = all.filter((entry) => !refused.has(entry))
  for (const { allowance, entries } of groups(list, limitName)) {
    const units = entries.map(unitsOf)
    const whole = mode === "strict"
    const amounts = whole ? [units.reduce((sum, one) => sum + one, 0)] : units
    const refusals = await reserveEach(tx, allowance, amounts)
    for (const [at, entry] of entries.entries()) {
      const refusal = refusals[whole ? 0 : at]
      if (refusal) refused.set(entry, refusal)
    }
  }
}

/** Free accounts of one person share a count, and may have numbers of the operator of their own. */
const limitName = ({ allowance: { subject, metric, limit } }: CountedEntry) =>
  `${subject} ${metric} ${limit}`

/** What stands or falls together has one draw: that of its first message. */
async function refuseByStatus(
  tx: Tx,
  list: MessageEntry[],
  mode: AcceptMode,
  refused: Map<MessageEntry, ApiError>,
) {
  const left = list.filter((entry) => entry.standing && !refused.has(entry))
  const [first] = left
  if (!first) return
  for (const entry of left) {
    const refusal = statusRefusal(entry, (mode === "strict" ? first : entry).message.id)
    if (!refusal) continue
    if (mode !== "apart" && refusal.code === "account_frozen") throw refusal
    refused.set(entry, refusal)
    if (entry.allowance) await giveBack(tx, entry.allowance, unitsOf(entry))
  }
}

/** Neither codes and links nor mail that stays in the sandbox are throttled. */
function statusRefusal({ message, standing }: MessageEntry, drawn_id: string) {
  if (!standing) return undefined
  const is_exempt = message.stream === "auth" || message.sandbox
  return frozenRefusal(standing) ?? (is_exempt ? undefined : throttledRefusal(standing, drawn_id))
}

const bucketName = ({ message: { project_id, channel } }: CountedEntry) =>
  `${project_id} ${channel}`

/** A batch takes its number of emails at once, and waits as a whole. */
async function slowDown(
  tx: Tx,
  list: MessageEntry[],
  mode: AcceptMode,
  refused: Map<MessageEntry, ApiError>,
) {
  const left = list.filter((entry) => !refused.has(entry))
  for (const { allowance, entries } of groups(left, bucketName)) {
    const [first] = entries
    const bucket = {
      project_id: first?.message.project_id ?? "",
      channel: first?.message.channel ?? "",
      limit: allowance.sends_per_second,
    }
    const amounts = mode === "apart" ? entries.map(() => 1) : [entries.length]
    const refusals = await takeFromBucket(tx, bucket, amounts)
    const [whole] = refusals
    if (mode !== "apart" && whole) throw whole
    for (const [at, entry] of entries.entries()) {
      const refusal = refusals[at]
      if (!refusal) continue
      refused.set(entry, refusal)
      await giveBack(tx, allowance, unitsOf(entry))
    }
  }
}

interface CountedEntry extends MessageEntry {
  allowance: NonNullable<MessageEntry["allowance"]>
}

const isCounted = (entry: MessageEntry): entry is CountedEntry => entry.allowance !== null

/** In one order everywhere, so that no two transactions wait for each other's rows. */
function groups(list: MessageEntry[], keyOf: (entry: CountedEntry) => string) {
  const all = Map.groupBy(list.filter(isCounted), keyOf)
  return [...all.keys()].sort().flatMap((key) => {
    const entries = all.get(key) ?? []
    const [first] = entries
    return first ? [{ allowance: first.allowance, entries }] : []
  })
}

function usageOf(entry: CountedEntry) {
  const { account_id, project_id, channel: metric, created_at } = entry.message
  const day = created_at.slice(0, 10)
  return { account_id, project_id, day, metric, value: unitsOf(entry) }
}
