import type { Problems } from "../core/errors"
import { isPast, secondsFromNow } from "../core/time"
import { readTime } from "../http/page"

/** How far ahead a message may be scheduled, on every channel (contract 20, 1.1). */
const MAX_DAYS_AHEAD = 90

const DAY_SECONDS = 86_400

/**
 * When a message is to be sent: ISO 8601 with an offset, at most 90 days ahead. Null, an absent value and
 * a time that has passed mean now: they give null. Anything else is a problem.
 */
export function readScheduledAt(value: unknown, path: string, problems: Problems): string | null {
  if (value == null) return null
  const at = readTime(path, typeof value === "string" ? value : "", problems)
  if (at === undefined || isPast(at)) return null
  const latest = secondsFromNow(MAX_DAYS_AHEAD * DAY_SECONDS)
  if (at <= latest) return at
  const hint = `A message can be scheduled at most ${MAX_DAYS_AHEAD} days ahead, until ${latest}. You gave ${at}.`
  return problems.add(path, "too_late", hint) ?? null
}
