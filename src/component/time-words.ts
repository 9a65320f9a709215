const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** From a week on, the date says more than the distance. */
const LONGEST = 7 * DAY

/** How long ago something was, as people of the language say it. Times are milliseconds since 1970. */
export function timeAgo(at: number, now: number, tag: string): string {
  const passed = Math.max(0, now - at) // clocks differ between devices
  if (passed >= LONGEST) return dateOf(at, tag)
  const format = new Intl.RelativeTimeFormat(tag, { numeric: "auto", style: "short" })
  if (passed < MINUTE) return format.format(0, "second")
  if (passed < HOUR) return format.format(-Math.floor(passed / MINUTE), "minute")
  if (passed < DAY) return format.format(-Math.floor(passed / HOUR), "hour")
  return format.format(-Math.floor(passed / DAY), "day")
}

const dateOf = (at: number, tag: string) =>
  new Intl.DateTimeFormat(tag, { dateStyle: "medium" }).format(at)

/** A moment on the clock of this device. */
export const momentText = (at: number, tag: string): string =>
  new Intl.DateTimeFormat(tag, { dateStyle: "medium", timeStyle: "short" }).format(at)

const MORNING = 9

/** When a snooze ends. A day and a week end in a morning of this device. */
export function snoozeEnds(now: number): Record<"hour" | "day" | "week", number> {
  const today = new Date(now)
  const morningIn = (days: number) =>
    new Date(today.getFullYear(), today.getMonth(), today.getDate() + days, MORNING).getTime()
  const to_monday = (8 - today.getDay()) % 7 || 7
  return { hour: now + HOUR, day: morningIn(1), week: morningIn(to_monday) }
}
