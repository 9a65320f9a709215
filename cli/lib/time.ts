import { usage } from "./errors"

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export const millis = (): number => Date.now()

/** A thousand years: what is longer was not meant, and dates end. */
const MOST_MILLISECONDS = 365_000 * 86_400_000

/** `250ms`, `10s`, `5m`, `2h`, `30d`; a bare number counts seconds. Milliseconds, or exit 2. */
export function duration(text: string, option: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim()) ?? []
  const factor = units[unit ?? "s"]
  if (amount === undefined || factor === undefined) {
    throw usage(
      `${option}: "${text}" is not a time span`,
      "write a number with its unit: 250ms, 10s, 5m, 2h or 30d",
    )
  }
  const span = Math.round(Number(amount) * factor)
  if (span <= MOST_MILLISECONDS) return span
  throw usage(`${option}: "${text}" is too long`, "write at most 365000d")
}

/** A moment: an ISO time (without an offset: this machine's), or a span that counts back from now. */
export const moment = (text: string, option: string): string =>
  momentOf(text, option, -1, "10m, 2h or 7d for a span before now")

/** The same for what ends later: a span counts forward from now. */
export const momentAhead = (text: string, option: string): string =>
  momentOf(text, option, 1, "90d or 12h for a span from now")

function momentOf(text: string, option: string, direction: 1 | -1, spans: string): string {
  if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(text)) {
    return new Date(millis() + direction * duration(text, option)).toISOString()
  }
  const parsed = new Date(text)
  if (!ISO.test(text) || Number.isNaN(parsed.getTime())) {
    const now = new Date(millis()).toISOString().replace(/\.\d+/, "")
    throw usage(`${option}: "${text}" is not a time`, `write ${spans}, or a time as ${now}`)
  }
  return parsed.toISOString()
}

/** `2026-11-21`, or with a time, which may have an offset. Other texts would be guessed at. */
const ISO = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/i

/** A month as `2026-11`, or exit 2. */
export function month(text: string | undefined, option: string): string | undefined {
  if (text === undefined || /^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text
  const now = new Date(millis()).toISOString().slice(0, "2026-11".length)
  throw usage(`${option}: "${text}" is not a month`, `write the year and the month: ${now}`)
}

/** `3 s`, `5 min`, `2 h`, `4 d`: how long ago a time was, for people. */
export function age(time: unknown, now = millis()): string {
  const at = typeof time === "string" ? new Date(time).getTime() : Number.NaN
  if (Number.isNaN(at)) return ""
  const seconds = Math.round((now - at) / 1000)
  const distance = span(Math.abs(seconds))
  return seconds < 0 ? `in ${distance}` : distance
}

/** `38 ms`, `2.4 s`, `3 min`: how long something took. */
export function tookText(milliseconds: number): string {
  const took = Math.max(0, milliseconds)
  if (took < 1000) return `${Math.round(took)} ms`
  return took < 10_000 ? `${(took / 1000).toFixed(1)} s` : span(Math.floor(took / 1000))
}

/** `3 s`, `12 min`, `2 h`, `4 d`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** `12:00:01.102` in this machine's time zone. */
export function clockTime(iso: string): string {
  const at = new Date(iso)
  const two = (part: number) => String(part).padStart(2, "0")
  const seconds = `${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`
  return `${two(at.getHours())}:${two(at.getMinutes())}:${seconds}`
}

/** `12:00:01`; empty for no time. */
export const clockSecond = (iso: string | null): string => (iso ? clockTime(iso).slice(0, 8) : "")

export const pause = (milliseconds: number): Promise<void> => Bun.sleep(milliseconds)

/** Looks every so often until it is over, or the limit is. Gives the last look. Times are in milliseconds. */
export async function lookUntil<Seen>(
  look: () => Promise<Seen>,
  isOver: (seen: Seen) => boolean,
  { limit, every }: { limit: number; every: number },
): Promise<Seen> {
  const deadline = millis() + limit
  while (true) {
    const seen = await look()
    if (isOver(seen) || millis() + every > deadline) return seen
    await pause(every)
  }
}
