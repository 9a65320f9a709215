import type { ApiError } from "../core/errors"
import type { ProjectSettings } from "../identity/tables"
import { frozenRefusal, type SendingCaller, throttledRefusal } from "../reputation/gate"
import type { Tx } from "../store/store"
import { countByCountry, refusalsByCountry } from "../tenancy/country-limit"
import {
  bucketsForUpdate,
  giveBack,
  type QuotaAllowance,
  reserveEach,
  takeFromBucket,
} from "../tenancy/quotas"
import { admitBytes, type StoredShare } from "../tenancy/stored-share"
import { add } from "../tenancy/usage"
import { storedSizes } from "./contents"
import type { NewMessage } from "./tables"

/** A message to accept, and the quota of its channel that it is counted under; null counts nowhere. */
export interface MessageEntry {
  message: NewMessage
  restricted?: SendingCaller | undefined
  allowance: (QuotaAllowance & { sends_per_second: number | null }) | null
  /** What its project may store; absent for mail of the instance itself. */
  share?: StoredShare
  /** The settings by which is decided whether its recipient gets it; absent where nothing is asked. */
  asking?: ProjectSettings | undefined
  /** The send that it is one of several messages of: they stand or fall together, and are one send of a second. */
  send?: string | undefined
}

/** Requests of their own; or one request, of which each message stands for itself, or all or none. */
export type AcceptMode = "apart" | "permissive" | "strict"

/**
 * Takes messages of any channel from the quota and from the sends of a second, in the transaction that accepts
 * them. `countUsage` follows as its last step. Answers why an entry is refused: what the project may store (403),
 * the month's quota (402), the account's sending status (403, 429), the sends of an hour to a country (429), then those
 * of a second (429). An entry that is not in the answer is admitted.
 */
export async function admit(
  tx: Tx,
  list: MessageEntry[],
  mode: AcceptMode = "apart",
): Promise<Map<MessageEntry, ApiError>> {
  const refused = new Map<MessageEntry, ApiError>()
  for (const step of [refuseFull, reserveAll, refuseByStatus, refuseByCountry, slowDown]) {
    const left = refused.size === 0 ? list : list.filter((entry) => !refused.has(entry))
    await step(tx, { left, mode, refused })
  }
  const to_countries = list.filter((entry) => isToCountry(entry) && !refused.has(entry))
  if (to_countries.length > 0) await countByCountry(tx, to_countries.map(messageOf))
  return refused
}

interface Admission {
  /** What nothing before has refused. */
  left: MessageEntry[]
  mode: AcceptMode
  refused: Map<MessageEntry, ApiError>
}

/**
 * Counts admitted messages as used. It is the last step of a transaction that accepts: one that waits for a
 * subscriber must not hold a count that others wait for.
 */
export const countUsage = (tx: Tx, admitted: MessageEntry[]): Promise<void> =>
  add(tx, admitted.filter(isCounted).map(usageOf))

const unitsOf = ({ message: { units, recipients } }: MessageEntry) => units ?? recipients.length

/** Asks nothing where the plan has no limit. */
async function refuseFull(tx: Tx, admission: Admission) {
  const limited = admission.left.filter(({ share }) => (share?.limit_mb ?? null) !== null)
  if (limited.length === 0) return
  const sizes = storedSizes(limited.map(({ message }) => message))
  const bytes = new Map(limited.map((entry, at) => [entry, sizes[at]?.bytes ?? 0]))
  for (const entries of Map.groupBy(limited, ({ message }) => message.project_id).values()) {
    const share = entries[0]?.share
    const wishes = entries.map((entry) => bytes.get(entry) ?? 0)
    if (share) await ask(admission, entries, wishes, (list) => admitBytes(tx, share, list))
  }
}

/** Asks nothing where the month has no limit. */
async function reserveAll(tx: Tx, admission: Admission) {
  const limited = admission.left.filter(({ allowance }) => (allowance?.limit ?? null) !== null)
  for (const { allowance, entries } of groups(limited, limitName)) {
    const limit = allowance.limit ?? 0
    const units = entries.map(unitsOf)
    await ask(admission, entries, units, (list) => reserveEach(tx, { ...allowance, limit }, list))
  }
}

/** Asks for what each entry wants. All or none are asked for together. */
async function ask(
  { mode, refused }: Admission,
  entries: MessageEntry[],
  amounts: number[],
  take: (amounts: number[]) => Promise<(ApiError | null)[]>,
) {
  const wholes = mode === "strict" ? entries.map(() => 0) : sendsOf(entries)
  const sums: number[] = []
  for (const [at, amount] of amounts.entries()) {
    const whole = wholes[at] ?? 0
    sums[whole] = (sums[whole] ?? 0) + amount
  }
  const refusals = await take(sums)
  for (const [at, entry] of entries.entries()) {
    const refusal = refusals[wholes[at] ?? 0]
    if (refusal) refused.set(entry, refusal)
  }
}

/** For each entry the number of its send, from 0. */
function sendsOf(entries: MessageEntry[]): number[] {
  const known = new Map<string, number>()
  let next = 0
  return entries.map(({ send }) => {
    const number = send === undefined ? next : (known.get(send) ?? next)
    if (number === next) next += 1
    if (send !== undefined) known.set(send, number)
    return number
  })
}

/** Free accounts of one person share a count, and may have numbers of the operator of their own. */
const limitName = ({ allowance: { subject, metric, limit } }: CountedEntry) =>
  `${subject} ${metric} ${limit}`

/** What stands or falls together has one draw: that of its first message. */
async function refuseByStatus(tx: Tx, { left, mode, refused }: Admission) {
  const restricted = left.filter((entry) => entry.restricted)
  const [first] = restricted
  if (!first) return
  for (const entry of restricted) {
    const drawn_id = mode === "strict" ? first.message.id : (entry.send ?? entry.message.id)
    const refusal = statusRefusal(entry, drawn_id)
    if (!refusal) continue
    if (mode !== "apart" && refusal.code === "account_frozen") throw refusal
    refused.set(entry, refusal)
    if (entry.allowance) await giveBack(tx, entry.allowance, unitsOf(entry))
  }
}

/** Neither codes and links nor mail that stays in the sandbox are throttled. */
function statusRefusal({ message, restricted }: MessageEntry, drawn_id: string) {
  if (!restricted) return undefined
  const is_exempt = message.stream === "auth" || message.sandbox
  return (
    frozenRefusal(restricted) ?? (is_exempt ? undefined : throttledRefusal(restricted, drawn_id))
  )
}

const messageOf = ({ message }: MessageEntry) => message

const isToCountry = ({ message }: MessageEntry) => message.country !== undefined

/** Holds the buckets first: a publish does so as well, because it learns the countries last. */
async function refuseByCountry(tx: Tx, { left, mode, refused }: Admission) {
  const limited = left.filter(isToCountry)
  if (limited.length === 0) return
  const buckets = groups(left, bucketName)
  await bucketsForUpdate(
    tx,
    buckets.map((one) => bucketOf(one)),
  )
  const refusals = await refusalsByCountry(tx, limited.map(messageOf))
  for (const [at, entry] of limited.entries()) {
    const refusal = refusals[at]
    if (!refusal) continue
    if (mode === "strict") throw refusal
    refused.set(entry, refusal)
    if (entry.allowance) await giveBack(tx, entry.allowance, unitsOf(entry))
  }
}

const bucketOf = ({ message: { project_id, channel }, allowance }: CountedEntry) => ({
  ...{ project_id, channel, limit: allowance.sends_per_second },
})

const bucketName = ({ message: { project_id, channel } }: CountedEntry) =>
  `${project_id} ${channel}`

/** A batch takes its number of emails at once, and waits as a whole. Asks nothing where a second has no limit. */
async function slowDown(tx: Tx, { left, mode, refused }: Admission) {
  const limited = left.filter(({ allowance }) => (allowance?.sends_per_second ?? null) !== null)
  for (const { entries, ...first } of groups(limited, bucketName)) {
    const bucket = bucketOf(first)
    const sends = sendsOf(entries)
    const total = Math.max(...sends) + 1
    const wishes = mode === "apart" ? Array.from({ length: total }, () => 1) : [total]
    const refusals = await takeFromBucket(tx, bucket, wishes)
    const [whole] = refusals
    if (mode !== "apart" && whole) throw whole
    for (const [at, entry] of entries.entries()) {
      const refusal = refusals[sends[at] ?? 0]
      if (!refusal) continue
      refused.set(entry, refusal)
      await giveBack(tx, first.allowance, unitsOf(entry))
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
    return first ? [{ ...first, entries }] : []
  })
}

function usageOf(entry: CountedEntry) {
  const { account_id, project_id, channel: metric, created_at } = entry.message
  const day = created_at.slice(0, 10)
  return { account_id, project_id, day, metric, value: unitsOf(entry) }
}
