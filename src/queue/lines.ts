import { millis, millisFrom, now } from "../core/time"

export type WorkState = "waiting" | "retrying" | "running" | "held"

export interface OpenWork {
  state: WorkState
  reason: string | null
  since: string
  next_attempt_at: string | null
  /** The end of its lease; null while it is not claimed. */
  lease_until: string | null
  /** Whose mail server it is for; none for what is no mail, or is scheduled for later. */
  domain?: string
  /** How many pieces it stands for that were only counted. */
  count?: number
}

interface StateLine {
  queue: string
  state: WorkState
  reason: string | null
  count: number
  oldest_seconds: number
  next_attempt_at: string | null
  /** The first lease to run out; after it another worker takes the work up. */
  lease_until: string | null
}

interface DomainLine {
  domain: string
  waiting: number
  running: number
  /** Until when nothing goes there, because every piece was put off. */
  paused_until: string | null
  reason: string | null
}

/** Work that was only counted, as one piece like the last that was looked at. */
export function counted(count: number, last: OpenWork | undefined): OpenWork[] {
  if (count <= 0 || !last) return []
  const { domain: _, ...like } = last
  return [{ ...like, count }]
}

/** The same of work of which each piece may wait for something else. */
export const countedOthers = (count: number, last: OpenWork | undefined): OpenWork[] =>
  counted(count, last && { ...last, state: "waiting", reason: null, next_attempt_at: null })

export function byState(queue: string, work: OpenWork[]): StateLine[] {
  const lines = new Map<string, StateLine>()
  for (const { state, reason, since, next_attempt_at, lease_until, count = 1 } of work) {
    const name = `${state} ${reason}`
    const oldest_seconds = Math.max(0, Math.floor((millis() - millisFrom(since)) / 1000))
    const known = lines.get(name) ?? blank(queue, state, reason)
    known.count += count
    known.oldest_seconds = Math.max(known.oldest_seconds, oldest_seconds)
    known.next_attempt_at = earlier(known.next_attempt_at, next_attempt_at)
    known.lease_until = earlier(known.lease_until, lease_until)
    lines.set(name, known)
  }
  return [...lines.values()].sort((a, b) => b.oldest_seconds - a.oldest_seconds)
}

const blank = (queue: string, state: WorkState, reason: string | null): StateLine => ({
  queue,
  state,
  reason,
  count: 0,
  oldest_seconds: 0,
  next_attempt_at: null,
  lease_until: null,
})

/** The lines of mail, by the domains that have most. */
export function byDomain(work: OpenWork[]): DomainLine[] {
  const domains = Map.groupBy(work, ({ domain }) => domain)
  const lines = [...domains].flatMap(([domain, list]) =>
    domain === undefined ? [] : [lineOf(domain, list)],
  )
  return lines.sort((a, b) => b.waiting + b.running - a.waiting - a.running)
}

function lineOf(domain: string, list: OpenWork[]): DomainLine {
  const waiting = list.filter(({ state }) => state !== "running")
  const put_off = waiting.filter(({ next_attempt_at }) => (next_attempt_at ?? "") > now())
  const paused = waiting.length > 0 && put_off.length === waiting.length
  const first = put_off.map(({ next_attempt_at }) => next_attempt_at).reduce(earlier, null)
  return {
    domain,
    waiting: waiting.length,
    running: list.length - waiting.length,
    paused_until: paused ? first : null,
    reason: waiting.findLast(({ reason }) => reason !== null)?.reason ?? null,
  }
}

const earlier = (a: string | null, b: string | null): string | null =>
  a === null || b === null ? (a ?? b) : a < b ? a : b
