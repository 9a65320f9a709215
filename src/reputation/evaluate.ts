import { eq, ne } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { settings } from "../core/config"
import { conflict } from "../core/errors"
import { log } from "../core/log"
import { isoFrom, millis, millisFrom, sleep } from "../core/time"
import { emitAll } from "../events/emit"
import type { AccountReputation } from "../identity/account-reputation"
import { accounts, type SendingStatus } from "../identity/tables"
import { enqueue } from "../jobs/jobs"
import { perStore } from "../store/cached"
import { rowForUpdate } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import * as tenancy from "../tenancy/accounts"
import { active, INSTANCE_SLUG } from "../tenancy/projects"
import { holdComplained } from "./gate"
import {
  type CountedHour,
  hourOf,
  hoursOf,
  KEPT_HOURS,
  SENDERS_AT_ONCE,
  sendersIn,
  sumOf,
} from "./hour-counts"
import { reputationAlert } from "./owner-mail"
import {
  type AccountStanding,
  BLANK,
  decide,
  less,
  type Readings,
  type StatusDecision,
  type Thresholds,
  thresholds,
  windowStart,
} from "./sending-status"

/** Before an hour is unusual, mail must be this much older. */
const HISTORY_HOURS = 24

/** What is read of an account's mail now, hour by hour, by which it is assessed and foretold. */
interface ReputationReadings extends Readings {
  hours: CountedHour[]
}

type AccountRow = tenancy.AccountRow

export const standingOf = ({ sending_status, reputation }: AccountRow): AccountStanding => ({
  status: sending_status,
  reputation: reputation ?? BLANK,
})

/** Reads the counters of the account, from the first hour of its window on. */
export async function read(
  db: Reader,
  account: Pick<AccountRow, "id" | "reputation">,
  limits: Thresholds,
  at_ms: number,
): Promise<ReputationReadings> {
  const start = windowStart(account.reputation, limits, at_ms)
  const hours = await hoursOf(db, account.id, start.hour)
  const counts = less(sumOf(hours), start.base)
  const hour_sent = hours.find(({ hour }) => hour === hourOf(at_ms))?.sent ?? 0
  const is_much = hour_sent > limits.throttled.hour_sent * limits.recovery.share
  const is_asked = is_much || account.reputation?.cause === "hour_sent"
  const usual_hour = is_asked ? await usualHour(db, account, at_ms) : null
  return { counts, hour_sent, usual_hour, hours }
}

/** The busiest hour that is older than a day; null where no mail is that old. */
export async function usualHour(
  db: Reader,
  { id, reputation }: Pick<AccountRow, "id" | "reputation">,
  at_ms: number,
): Promise<number | null> {
  const present = hourOf(at_ms)
  const restarted = reputation?.window_start
  const oldest = present - KEPT_HOURS
  const since = restarted ? Math.max(oldest, hourOf(millisFrom(restarted))) : oldest
  const hours = await hoursOf(db, id, since)
  const old = hours.filter(({ hour, sent }) => hour <= present - HISTORY_HOURS && sent > 0)
  return old.length === 0 ? null : Math.max(...old.map(({ sent }) => sent))
}

/**
 * Assesses an account by its counters, and writes what changed. Two nodes may assess it at once: each
 * change is decided again under the lock of the account's row, so that it happens, and is told, once.
 */
export async function evaluate(store: Store, account_id: string): Promise<void> {
  const [account] = await store.read.select().from(accounts).where(eq(accounts.id, account_id))
  if (!account || account.deleting_at) return
  const found = await assess(store.read, account)
  if (!differs(account, found)) return
  await store.tx(async (tx) => {
    const before = await tenancy.findForUpdate(tx, account_id)
    const decision = await assess(tx, before)
    if (differs(before, decision)) await write(tx, before, decision)
  })
}

async function assess(db: Reader, account: AccountRow): Promise<StatusDecision> {
  const limits = thresholds()
  const at_ms = millis()
  const standing = standingOf(account)
  if (!settings()["reputation.enforced"]) return unenforced(standing, at_ms)
  return decide(standing, await read(db, account, limits, at_ms), limits, at_ms)
}

/** What rates brought ends. What the operator froze still waits for the operator. */
function unenforced({ status, reputation }: AccountStanding, at_ms: number): StatusDecision {
  if (status === "active" || reputation.cause === "operator")
    return { status, reputation, reason: null, warn: null }
  const { window_start, base } = reputation
  const active = { ...BLANK, window_start, base, changed_at: isoFrom(at_ms) }
  return { status: "active", reputation: active, reason: null, warn: null }
}

/** Rates of an active account are read when they are asked for, so no row is written for them. */
function differs(
  account: AccountRow,
  { status, reputation, reason, warn }: StatusDecision,
): boolean {
  if (status === "frozen" && account.sending_status === "frozen") return false
  if (status !== account.sending_status || warn !== null) return true
  const before = account.reputation ?? BLANK
  if (reputation.warned !== before.warned) return true
  if (status === "active") return false
  return reason !== account.sending_status_reason || !isSame(before, reputation)
}

const SHOWN = ["rejected_share", "below_since", "bounce_rate", "complaint_rate", "cause"] as const

const isSame = (one: AccountReputation, other: AccountReputation) =>
  SHOWN.every((name) => one[name] === other[name])

async function write(
  tx: Tx,
  before: AccountRow,
  { status, reputation, reason, warn }: StatusDecision,
) {
  const change = { reputation, reason, by: audit.SYSTEM }
  if (status !== before.sending_status) await changeStatus(tx, before, status, change)
  else await tenancy.set(tx, before.id, { reputation, sending_status_reason: reason })
  if (warn) {
    const payload = { account_id: before.id, kind: `${warn}_soon` as const, ...told(reputation) }
    await enqueue(tx, reputationAlert, { payload: { ...payload, reason: null }, project_id: null })
  }
}

const told = ({ bounce_rate, complaint_rate }: AccountReputation) => ({
  bounce_rate,
  complaint_rate,
})

interface StatusReason {
  reputation: AccountReputation
  reason: string | null
  /** What the operator gives as the reason of an end, for the audit log alone. */
  why?: string
  by: audit.By
}

/** The account is held by the caller. Tells its projects, the audit log and its owners. */
async function changeStatus(
  tx: Tx,
  before: AccountRow,
  to: SendingStatus,
  { reputation, reason, why, by }: StatusReason,
): Promise<AccountRow> {
  const changes = { sending_status: to, sending_status_reason: reason, reputation }
  const after = await tenancy.set(tx, before.id, changes)
  await tenancy.log(tx, by, before.id, `account.${verbOf(before, to)}`, {
    before: { sending_status: before.sending_status, reason: before.sending_status_reason },
    after: { sending_status: to, reason: reason ?? why ?? null },
  })
  const rates = told(reputation)
  const account_id = before.id
  const from = before.sending_status
  const at = reputation.changed_at ?? isoFrom(millis())
  const data = { account_id, from, to, reason, ...rates, timestamp: at }
  const projects = await active(tx, account_id)
  await emitAll(
    tx,
    projects.map(({ id: project_id }) => ({
      ...{ account_id, project_id, subject_id: account_id, data },
      type: "account.sending_status_changed",
    })),
  )
  const payload = { account_id, kind: to, reason, ...rates }
  await enqueue(tx, reputationAlert, { payload, project_id: null })
  tx.afterCommit(() =>
    log.info("the sending status of an account changed", { account_id, from, to, reason }),
  )
  return after
}

function verbOf({ sending_status }: AccountRow, to: SendingStatus): string {
  if (to !== "active") return to
  return sending_status === "frozen" ? "unfrozen" : "unthrottled"
}

/** Stops all sending of an account. Throws 404, and 409 where it is frozen already. */
export async function freeze(tx: Tx, account_id: string, reason: string, by: audit.By) {
  const before = await namedForUpdate(tx, account_id)
  if (before.sending_status === "frozen") {
    conflict("frozen", account_id, "This account is frozen already.")
  }
  const { reputation } = standingOf(before)
  const changes = { cause: "operator", rejected_share: 1, below_since: null, warned: null } as const
  const frozen = { ...reputation, ...changes, changed_at: isoFrom(millis()) }
  return changeStatus(tx, before, "frozen", { reputation: frozen, reason, by })
}

/**
 * Lets a frozen account send again. Its window begins now: what was counted before counts no more.
 * Throws 404, and 409 where it is not frozen. The audit log keeps the reason.
 */
export async function unfreeze(tx: Tx, account_id: string, why: string, by: audit.By) {
  const before = await namedForUpdate(tx, account_id)
  if (before.sending_status !== "frozen") {
    const text = `This account is ${before.sending_status}, not frozen. A throttled account becomes active by itself.`
    conflict("not_frozen", account_id, text)
  }
  const at_ms = millis()
  const base = sumOf(await hoursOf(tx, account_id, hourOf(at_ms)))
  const window_start = isoFrom(at_ms)
  const reputation = { ...BLANK, window_start, base, changed_at: window_start }
  return changeStatus(tx, before, "active", { reputation, reason: null, why, by })
}

/** Not the account of the instance itself, which no route names. */
async function namedForUpdate(tx: Tx, account_id: string): Promise<AccountRow> {
  const account = await rowForUpdate(tx, accounts, account_id)
  const is_hidden = account === undefined || account.slug === INSTANCE_SLUG
  return is_hidden ? tenancy.find(tx, "") : account
}

/** Bounces come in bursts: accounts are assessed after them so often at most. */
const PAUSE_MILLISECONDS = 200

const troubled = perStore(() => ({ accounts: new Set<string>(), listeners: new Set<() => void>() }))

/** Says, once the transaction is on disk, that accounts have a new bounce or complaint. */
export function noteTrouble(tx: Tx, account_ids: Iterable<string>) {
  tx.afterCommit(() => {
    const { accounts: waiting, listeners } = troubled(tx)
    for (const id of account_ids) waiting.add(id)
    for (const hear of listeners) hear()
  })
}

/** Assesses the accounts that have waited since the last time. */
export async function assessTroubled(store: Store): Promise<void> {
  const { accounts: waiting } = troubled(store.read)
  while (waiting.size > 0) {
    const ids = [...waiting]
    waiting.clear()
    for (const id of ids) await assessOne(store, id)
  }
}

/** Assesses the accounts that sent lately, and those that are not active. */
export async function assessAll(store: Store): Promise<void> {
  const present = hourOf(millis())
  const seen = new Set<string>()
  const assessNew = async (ids: string[]) => {
    for (const id of ids) {
      if (!seen.has(id)) await assessOne(store, id)
      seen.add(id)
    }
  }
  const is_other = ne(accounts.sending_status, "active")
  const others = await store.read.select({ id: accounts.id }).from(accounts).where(is_other)
  await assessNew(others.map(({ id }) => id))
  for (const hour of [present - 1, present]) {
    for (let after: string | undefined; ; ) {
      const ids = await sendersIn(store.read, hour, after)
      await assessNew(ids)
      if (ids.length < SENDERS_AT_ONCE) break
      after = ids.at(-1)
    }
  }
}

/**
 * Its tags and templates first: one of them may be the only trouble. An account that cannot be assessed
 * keeps no other from it.
 */
async function assessOne(store: Store, account_id: string) {
  try {
    await holdComplained(store, account_id)
    await evaluate(store, account_id)
  } catch (error) {
    log.warn("the reputation of an account could not be assessed", { account_id, error })
  }
}

/** Assesses after each bounce or complaint, until the returned function is called. */
export function assessAfterTrouble(store: Store): () => Promise<void> {
  const { listeners } = troubled(store.read)
  const stop = new AbortController()
  let running: Promise<void> | undefined
  const run = async () => {
    await sleep(PAUSE_MILLISECONDS, stop.signal)
    await assessTroubled(store)
  }
  const hear = () => {
    running ??= run().finally(() => {
      running = undefined
      if (troubled(store.read).accounts.size > 0 && !stop.signal.aborted) hear()
    })
  }
  listeners.add(hear)
  return async () => {
    listeners.delete(hear)
    stop.abort()
    await running
  }
}
