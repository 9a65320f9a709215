/**
 * The only source of time. Tests move it; nothing else may ask the machine what time it is.
 * Lengths of time are measured with `monotonic()`, which no clock change can bend.
 */
export const clock = { read: (): number => Date.now() }

/** Epoch milliseconds. */
export const millis = (): number => clock.read()

/** ISO 8601, UTC, milliseconds: fixed width, so text order is time order. */
export const now = (): string => isoFrom(clock.read())

/** The ISO text of a moment `seconds` (fractions allowed, negative is the past) from now. */
export const secondsFromNow = (seconds: number): string => isoFrom(clock.read() + seconds * 1000)

/** Under load many things happen in one millisecond, and each writes the time down several times. */
const latest = { millis: 0, iso: "1970-01-01T00:00:00.000Z" }

/** ISO text of epoch milliseconds. Throws RangeError outside the years a Date can hold. */
export function isoFrom(epochMillis: number): string {
  if (epochMillis !== latest.millis) {
    latest.iso = new Date(epochMillis).toISOString() // throws before the number is kept
    latest.millis = epochMillis
  }
  return latest.iso
}

/** Epoch milliseconds of an ISO 8601 text, or NaN. */
export const millisFrom = (iso: string): number => new Date(iso).getTime()

/** Whether the moment has come. */
export const isPast = (iso: string): boolean => millisFrom(iso) <= millis()

/** Milliseconds since some fixed moment: for durations and deadlines, never for the calendar. */
export const monotonic = (): number => performance.now()

/** Resolves after `ms` milliseconds, or at once when the signal is aborted: it never rejects. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    if (signal?.aborted) done()
    else signal?.addEventListener("abort", done, { once: true })
  })
}

/** Resolves when everything that is ready now has had its turn. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The month of now, in UTC: `YYYY-MM`. */
export const currentPeriod = (): string => now().slice(0, 7)

/** The day of now, in UTC: `YYYY-MM-DD`. */
export const today = (): string => dayOf(now())

/** The day of an ISO text: `YYYY-MM-DD`. */
export const dayOf = (iso: string): string => iso.slice(0, "2026-11-29".length)

/** The moments at which a month begins, and at which the next one does. */
export function boundsOf(period: string): { start: string; end: string } {
  const [year = 0, month = 1] = period.split("-").map(Number)
  const next = month === 12 ? `${pad(year + 1, 4)}-01` : `${pad(year, 4)}-${pad(month + 1, 2)}`
  return { start: momentOf(period), end: momentOf(next) }
}

const momentOf = (period: string) => isoFrom(millisFrom(`${period}-01T00:00:00.000Z`))

const pad = (number: number, width: number) => String(number).padStart(width, "0")
/** What the work resolves to. A signal ends the wait with its reason, and the work goes on. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    // A signal may live much longer than one wait.
    const forget = () => signal.removeEventListener("abort", stop)
    if (signal.aborted) stop()
    signal.addEventListener("abort", stop, { once: true })
    work.finally(forget).then(resolve, reject)
  })
}
