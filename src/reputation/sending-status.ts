import { settings } from "../core/config"
import { isoFrom, millisFrom } from "../core/time"
import type { AccountReputation, ReputationCounts } from "../identity/account-reputation"
import type { SendingStatus } from "../identity/tables"
import { eachCount, hourOf } from "./hour-counts"

/** What is known of an account's mail at one moment. */
export interface Readings {
  /** Of the window. */
  counts: ReputationCounts
  /** Sent in the present hour. */
  hour_sent: number
  /** The busiest of its earlier hours; null where these are too few to say what is usual. */
  usual_hour: number | null
}

export interface AccountStanding {
  status: SendingStatus
  reputation: AccountReputation
}

export interface StatusDecision extends AccountStanding {
  reason: string | null
  /** Owners are to be warned of this step now. */
  warn: "throttled" | "frozen" | null
}

export const BLANK: AccountReputation = {
  window_start: null,
  base: null,
  bounce_rate: 0,
  complaint_rate: 0,
  rejected_share: 0,
  cause: null,
  below_since: null,
  warned: null,
  changed_at: null,
}

type Cause = "bounce_rate" | "complaint_rate" | "hour_sent"

/** How near a reading is to a threshold: 1 is at it. */
interface Nearness {
  cause: Cause
  value: number
  threshold: number
  ratio: number
}

/** Shares are products of fractions, which may miss a whole number by a little. */
const ROUNDING = 1e-9

/**
 * The sending status that follows from what is read, by the rules of contract 20, section 7. A pure
 * function: the same standing, readings and moment give the same decision. Only the operator lifts
 * `frozen`, and `throttled` ends when all rates stayed low for the time of recovery.
 */
export function decide(
  before: AccountStanding,
  readings: Readings,
  limits: Thresholds,
  at_ms: number,
): StatusDecision {
  if (before.status === "frozen") return { ...before, reason: null, warn: null }
  const near = {
    frozen: nearness(readings, limits, "frozen"),
    throttled: nearness(readings, limits, "throttled"),
  }
  const [freezing, throttling] = [reached(near.frozen), reached(near.throttled)]
  if (freezing) return entered(before, "frozen", freezing, readings, limits, at_ms)
  const decision = throttling
    ? entered(before, "throttled", throttling, readings, limits, at_ms)
    : before.status === "throttled"
      ? recovering(before, readings, limits, at_ms)
      : unchanged(before, readings)
  const step = decision.status === "throttled" ? "frozen" : "throttled"
  return withWarning(decision, step, near[step], limits)
}

/** The status that an active account with these readings would get now. */
export const statusOfRates = (
  { reputation }: AccountStanding,
  readings: Readings,
  limits: Thresholds,
  at_ms: number,
): SendingStatus => decide({ status: "active", reputation }, readings, limits, at_ms).status

const unchanged = (
  { status, reputation }: AccountStanding,
  { counts }: Readings,
): StatusDecision => ({
  status,
  reputation: { ...reputation, ...ratesOf(counts) },
  reason: null,
  warn: null,
})

export const ratesOf = ({ sent, bounced, complained }: ReputationCounts) => ({
  bounce_rate: rate(bounced, sent),
  complaint_rate: rate(complained, sent),
})

/** A share with six digits, which is what rows and answers hold. */
const rate = (some: number, all: number): number =>
  all === 0 ? 0 : Math.min(1, Math.round((some / all) * 1e6) / 1e6)

/** The causes that count at this step, the nearest to its threshold first. */
function nearness(
  { counts, hour_sent, usual_hour }: Readings,
  limits: Thresholds,
  step: "throttled" | "frozen",
): Nearness[] {
  const { min_sent, bounce_rate, complaint_rate } = limits[step]
  const { sent, bounced, complained } = counts
  const near: Nearness[] = []
  const add = (cause: Cause, value: number, threshold: number) =>
    near.push({ cause, value, threshold, ratio: value / threshold + ROUNDING })
  if (sent >= min_sent) {
    add("bounce_rate", bounced / sent, bounce_rate)
    add("complaint_rate", complained / sent, complaint_rate)
  }
  const spike = step === "throttled" ? spikeOf(usual_hour, limits) : null
  if (spike !== null) add("hour_sent", hour_sent, spike)
  return near.sort((a, b) => b.ratio - a.ratio)
}

const reached = ([nearest]: Nearness[]): Nearness | undefined =>
  nearest && nearest.ratio >= 1 ? nearest : undefined

/** Emails of one hour that are too many; null where nothing is usual yet. */
function spikeOf(usual_hour: number | null, { throttled }: Thresholds): number | null {
  if (usual_hour === null) return null
  return Math.max(throttled.hour_sent + 1, usual_hour * throttled.hour_factor)
}

/** Rises linearly from the threshold of throttling to that of freezing, for the worse of both rates. */
export function rejectedShare(counts: ReputationCounts, { throttled, frozen }: Thresholds): number {
  const { sent, bounced, complained } = counts
  const { least_share, most_share } = throttled
  const of = (some: number, name: "bounce_rate" | "complaint_rate") => {
    const span = frozen[name] - throttled[name]
    const over = (sent === 0 ? 0 : some / sent) - throttled[name]
    return span <= 0 ? Math.sign(Math.max(0, over)) : over / span
  }
  const worse = Math.max(of(bounced, "bounce_rate"), of(complained, "complaint_rate"))
  const part = Math.min(1, Math.max(0, worse))
  return Math.round((least_share + part * (most_share - least_share)) * 1e4) / 1e4
}

/** The status that a threshold brings; of an account that has it already, the numbers of now. */
function entered(
  { status, reputation }: AccountStanding,
  next: "throttled" | "frozen",
  { cause, value, threshold }: Nearness,
  { counts }: Readings,
  limits: Thresholds,
  at_ms: number,
): StatusDecision {
  const is_new = status !== next
  const after: AccountReputation = {
    ...reputation,
    ...ratesOf(counts),
    rejected_share: next === "frozen" ? 1 : rejectedShare(counts, limits),
    cause,
    below_since: null,
    warned: is_new ? null : reputation.warned,
    changed_at: is_new ? isoFrom(at_ms) : reputation.changed_at,
  }
  const reason = reasonOf(cause, value, threshold, limits)
  return { status: next, reputation: after, reason, warn: null }
}

function reasonOf(cause: Cause, value: number, threshold: number, limits: Thresholds): string {
  if (cause === "hour_sent") return `hour_sent=${value};threshold=${Math.ceil(threshold)};window=1h`
  const window = windowText(limits.window_ms)
  return `${cause}=${percentText(value)};threshold=${percentText(threshold)};window=${window}`
}

/** Below every threshold of throttling: active again once that has been clearly so for long enough. */
function recovering(
  { status, reputation }: AccountStanding,
  readings: Readings,
  limits: Thresholds,
  at_ms: number,
): StatusDecision {
  const rates = ratesOf(readings.counts)
  const { after_ms } = limits.recovery
  const since = reputation.below_since
  // A clock that was set back would make the time of recovery longer.
  const began = since !== null && millisFrom(since) <= at_ms ? millisFrom(since) : at_ms
  const is_low = isLow(readings, limits)
  if (is_low && at_ms - began >= after_ms) {
    const blank = { ...BLANK, window_start: reputation.window_start, base: reputation.base }
    const active = { ...blank, ...rates, changed_at: isoFrom(at_ms) }
    return { status: "active", reputation: active, reason: null, warn: null }
  }
  const { least_share } = limits.throttled
  const cause = reputation.cause === "operator" ? null : reputation.cause
  const after: AccountReputation = {
    ...reputation,
    ...rates,
    rejected_share: least_share,
    below_since: is_low ? isoFrom(began) : null,
  }
  const [value, threshold] = measured(cause ?? "bounce_rate", readings, limits)
  const reason = reasonOf(cause ?? "bounce_rate", value, threshold, limits)
  return { status, reputation: after, reason, warn: null }
}

function measured(cause: Cause, { counts, hour_sent, usual_hour }: Readings, limits: Thresholds) {
  if (cause === "hour_sent") {
    return [hour_sent, spikeOf(usual_hour, limits) ?? limits.throttled.hour_sent] as const
  }
  const some = cause === "bounce_rate" ? counts.bounced : counts.complained
  return [counts.sent === 0 ? 0 : some / counts.sent, limits.throttled[cause]] as const
}

/** However little was sent: an account that sends nothing has no bad rate. */
function isLow({ counts, hour_sent, usual_hour }: Readings, limits: Thresholds): boolean {
  const { throttled, recovery } = limits
  const { sent, bounced, complained } = counts
  const below = (some: number, threshold: number) =>
    sent === 0 || some / sent < threshold * recovery.share - ROUNDING
  const spike = spikeOf(usual_hour, limits)
  const is_calm = spike === null || hour_sent < spike * recovery.share
  return (
    is_calm && below(bounced, throttled.bounce_rate) && below(complained, throttled.complaint_rate)
  )
}

/** The step that is near now, from the share of its threshold on at which owners are warned. */
export function warningOf({ status }: AccountStanding, readings: Readings, limits: Thresholds) {
  if (status === "frozen") return null
  const next = status === "throttled" ? ("frozen" as const) : ("throttled" as const)
  const [nearest] = nearness(readings, limits, next)
  if (!nearest || nearest.ratio < limits.recovery.share) return null
  return { next, reason: reasonOf(nearest.cause, nearest.value, nearest.threshold, limits) }
}

/** Owners hear of a step once, from the share of its threshold on at which recovery would begin. */
function withWarning(
  decision: StatusDecision,
  step: "throttled" | "frozen",
  [nearest]: Nearness[],
  { recovery }: Thresholds,
): StatusDecision {
  const ratio = nearest?.ratio ?? 0
  const { reputation } = decision
  if (ratio >= recovery.share) {
    const warn = reputation.warned === step ? null : step
    return { ...decision, warn, reputation: { ...reputation, warned: step } }
  }
  const is_over = ratio < recovery.share * recovery.share
  return is_over ? { ...decision, reputation: { ...reputation, warned: null } } : decision
}

const HOUR_MS = 3_600_000

/** The numbers of one step. Rates are shares, 0 to 1. */
interface StepThresholds {
  min_sent: number
  bounce_rate: number
  complaint_rate: number
}

/** All numbers by which accounts are assessed. */
export interface Thresholds {
  window_ms: number
  throttled: StepThresholds & {
    hour_sent: number
    hour_factor: number
    least_share: number
    most_share: number
  }
  frozen: StepThresholds
  held: { min_sent: number; complaint_rate: number }
  /** A rate is low below this share of its threshold, and all must be so for that long. */
  recovery: { share: number; after_ms: number }
}

/** As the operator set them; they may change while the server runs. */
export function thresholds(): Thresholds {
  const own = settings()
  const rates = (step: "throttle" | "freeze") => ({
    min_sent: own[`reputation.${step}.min_sent`],
    bounce_rate: own[`reputation.${step}.bounce_percent`] / 100,
    complaint_rate: own[`reputation.${step}.complaint_percent`] / 100,
  })
  return {
    window_ms: own["reputation.window"],
    throttled: {
      ...rates("throttle"),
      hour_sent: own["reputation.throttle.hour_sent"],
      hour_factor: own["reputation.throttle.hour_factor"],
      least_share: own["reputation.throttle.least_percent"] / 100,
      most_share: own["reputation.throttle.most_percent"] / 100,
    },
    frozen: rates("freeze"),
    held: {
      min_sent: own["reputation.hold.min_sent"],
      complaint_rate: own["reputation.hold.complaint_percent"] / 100,
    },
    recovery: {
      share: own["reputation.recovery.percent"] / 100,
      after_ms: own["reputation.recovery.after"],
    },
  }
}

/** The first hour of the window that ends now: whole hours, the present one included. */
export const firstHour = (at_ms: number, window_ms: number): number =>
  hourOf(at_ms) + 1 - Math.ceil(window_ms / HOUR_MS)

/** `7d`, or `36h` where it is no number of days. */
export const windowText = (window_ms: number): string => {
  const hours = Math.ceil(window_ms / HOUR_MS)
  return hours % 24 === 0 ? `${hours / 24}d` : `${hours}h`
}

/** A share as a percentage: `6.1%`, `0.12%`. */
export function percentText(share: number): string {
  const percent = share * 100
  const rounded = percent >= 1 ? Math.round(percent * 10) / 10 : Number(percent.toPrecision(2))
  return `${rounded}%`
}

/**
 * The hour in which the window of an account, tag or template begins, and what was counted in it before: a
 * lifted freeze or a release begins it anew.
 */
export function windowStart(
  begun: { window_start: string | null; base: ReputationCounts | null } | null,
  { window_ms }: Thresholds,
  at_ms: number,
) {
  const hour = firstHour(at_ms, window_ms)
  if (!begun?.window_start) return { hour, base: null }
  const own = hourOf(millisFrom(begun.window_start))
  return own >= hour ? { hour: own, base: begun.base } : { hour, base: null }
}

/** What was counted beside the base. No number becomes negative. */
export function less(all: ReputationCounts, base: ReputationCounts | null): ReputationCounts {
  if (base === null) return all
  return eachCount((name) => Math.max(0, all[name] - base[name]))
}
