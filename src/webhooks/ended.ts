import { inArray } from "drizzle-orm"
import { now } from "../core/time"
import { held } from "../store/locks"
import { updater } from "../store/statements"
import type { Tx } from "../store/store"
import type { AttemptOutcome } from "./attempt"
import type { Claimed } from "./queue"
import { type AttemptEntry, type DeliveryError, type DeliveryStatus, deliveries } from "./tables"

/** One attempt that is over. */
export interface EndedAttempt {
  claimed: Claimed
  outcome: AttemptOutcome
  /** The endpoint's own text gave no JSON: the plain envelope went out instead. */
  transform_failed: boolean
  /** It failed, but one that began later had succeeded before: the endpoint is not worse for it. */
  is_outdone?: boolean
}

/** The row of a delivery after the attempt. */
export function rowOf(ended: EndedAttempt, status: DeliveryStatus, next_attempt_at: string | null) {
  const { claimed, outcome, transform_failed } = ended
  const { at, error, response_status, latency_ms } = outcome
  const attempts = claimed.attempts + 1
  const entry: AttemptEntry = { attempt: attempts, at, response_status, error, latency_ms }
  const told: DeliveryError | null = error ?? (transform_failed ? "transform_failed" : null)
  return {
    id: claimed.id,
    in_hand: claimed.in_hand ?? false,
    owner: claimed.owner,
    max_attempts: claimed.max_attempts,
    status,
    attempts,
    by_hand: false,
    next_attempt_at,
    url: outcome.url,
    request_headers: outcome.request_headers,
    response_headers: outcome.response_headers,
    last_response_body: outcome.response_body,
    last_response_status: response_status,
    last_error: told,
    latency_ms,
    attempt_log: [...claimed.attempt_log, entry],
    first_attempted_at: claimed.first_attempted_at ?? at,
    last_attempted_at: at,
    completed_at: status === "success" || status === "exhausted" ? now() : null,
  }
}

/** Those whose claims still count; their rows are ours until the transaction ends. */
export async function stillOurs(tx: Tx, list: EndedAttempt[]): Promise<EndedAttempt[]> {
  const ids = list.map(({ claimed }) => claimed.id)
  const { id, owner, max_attempts } = deliveries
  const columns = { id, owner, max_attempts }
  const rows = await held(tx.select(columns).from(deliveries).where(inArray(id, ids)))
  const found = new Map(rows.map((row) => [row.id, row]))
  return list.filter(({ claimed }) => {
    const row = found.get(claimed.id)
    if (claimed.in_hand) return row?.max_attempts === claimed.max_attempts
    return row !== undefined && row.owner === claimed.owner
  })
}

/** Writes rows of `rowOf`. Returns the ids of those whose claims still counted. */
export async function writeEnds(tx: Tx, rows: ReturnType<typeof rowOf>[]) {
  const isLight = ({ in_hand }: { in_hand: boolean }) => in_hand
  const light = await writeInHand(tx, rows.filter(isLight))
  const leased = await writeLeased(
    tx,
    rows.filter((row) => !isLight(row)),
  )
  return leased.size === 0 ? light : new Set([...light, ...leased])
}

const set = [
  "status",
  "attempts",
  "by_hand",
  "next_attempt_at",
  "url",
  "request_headers",
  "response_headers",
  "last_response_body",
  "last_response_status",
  "last_error",
  "latency_ms",
  "attempt_log",
  "first_attempted_at",
  "last_attempted_at",
  "completed_at",
] as const

const writeLeased = updater(deliveries, { where: ["id", "owner"], set: [...set], clear: ["owner"] })

// An attempt more was asked for in the moment of the claim: this one did not answer that.
const writeInHand = updater(deliveries, {
  where: ["id", "max_attempts"],
  set: [...set],
  clear: ["owner"],
  quiet: true, // see `ahead`
})
