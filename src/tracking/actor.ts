import { isMailProxy, isScanner } from "../lib/mail-client"
import type { HitActor } from "./tables"

/** Nobody reads a mail this soon. */
const SOONEST_READER_MS = 2_000

/** A hit of a link or pixel, as far as it tells what made it. */
export interface TrackedHit {
  type: "open" | "click"
  url: string | null
  /** Epoch milliseconds. */
  at: number
  visitor: string
  user_agent: string | null
  /** The request says that nobody looks at the answer yet. */
  is_prefetch: boolean
}

/** Headers of requests that a program makes ahead of its user. */
export function isPrefetch({ headers }: Pick<Request, "headers">): boolean {
  return ["purpose", "sec-purpose", "x-purpose", "x-moz"].some((name) =>
    /prefetch|prerender|preview/i.test(headers.get(name) ?? ""),
  )
}

/** So long a burst may last. */
export const BURST_MS = 2_000

/** A person does not follow so many different links of one mail in that time. */
const BURST_LINKS = 3

/** What bursts are found in. */
export type TimedHit = Pick<TrackedHit, "type" | "url" | "at" | "visitor">

/**
 * The maker of a hit (contract 20, section 4): a machine where a known proxy or scanner says so, the
 * request is a prefetch, it comes within two seconds of the delivery, or it belongs to a burst. Unknown
 * where the request names no program. `delivered_at` is in epoch milliseconds.
 */
export function actorOf(
  hit: TrackedHit,
  { delivered_at, isInBurst }: { delivered_at: number; isInBurst: (hit: TimedHit) => boolean },
): HitActor {
  const { user_agent, is_prefetch, at } = hit
  const program = user_agent ?? ""
  if (is_prefetch || isMailProxy(program) || isScanner(program)) return "machine"
  if (at - delivered_at < SOONEST_READER_MS || isInBurst(hit)) return "machine"
  return program === "" ? "unknown" : "human"
}

/**
 * Tells which hits of one mail belong to a burst: three different links followed within two seconds,
 * by one visitor or several, and what such a visitor loads within two seconds of it.
 */
export function burstsIn(hits: TimedHit[]): (hit: TimedHit) => boolean {
  const clicks = hits.filter(({ type }) => type === "click").sort((one, two) => one.at - two.at)
  const spans: { from: number; to: number }[] = []
  const seen = new Map<string, number>()
  let first = 0
  for (const { url, at } of clicks) {
    seen.set(url ?? "", (seen.get(url ?? "") ?? 0) + 1)
    for (let early = clicks[first]; early && at - early.at > BURST_MS; early = clicks[++first]) {
      const left = (seen.get(early.url ?? "") ?? 0) - 1
      if (left > 0) seen.set(early.url ?? "", left)
      else seen.delete(early.url ?? "")
    }
    if (seen.size < BURST_LINKS) continue
    const from = clicks[first]?.at ?? at
    const last = spans.at(-1)
    if (last && from <= last.to) last.to = at
    else spans.push({ from, to: at })
  }
  if (spans.length === 0) return () => false
  const isWithin = (at: number, slack_ms: number) =>
    spans.some(({ from, to }) => at >= from - slack_ms && at <= to + slack_ms)
  const scanners = new Set(clicks.filter(({ at }) => isWithin(at, 0)).map((one) => one.visitor))
  return ({ type, at, visitor }) =>
    type === "click" ? isWithin(at, 0) : scanners.has(visitor) && isWithin(at, BURST_MS)
}
