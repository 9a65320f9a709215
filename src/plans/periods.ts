import { isoFrom, millisFrom, now } from "../core/time"

/** The month of now, in UTC: `YYYY-MM`. */
export const currentPeriod = (): string => now().slice(0, 7)

/** The day of now, in UTC: `YYYY-MM-DD`. */
export const today = (): string => now().slice(0, 10)

/** The moments at which a month begins, and at which the next one does. */
export function boundsOf(period: string): { start: string; end: string } {
  const [year = 0, month = 1] = period.split("-").map(Number)
  const next = month === 12 ? `${pad(year + 1, 4)}-01` : `${pad(year, 4)}-${pad(month + 1, 2)}`
  return { start: momentOf(period), end: momentOf(next) }
}

const momentOf = (period: string) => isoFrom(millisFrom(`${period}-01T00:00:00.000Z`))

const pad = (number: number, width: number) => String(number).padStart(width, "0")
