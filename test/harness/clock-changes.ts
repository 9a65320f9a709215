/** Zones whose gaps are two hours, one, and half an hour; with changes at midnight; of both hemispheres. */
export const ZONES = [
  "Europe/Berlin",
  "Europe/London",
  "Atlantic/Azores",
  "America/New_York",
  "America/St_Johns",
  "America/Havana",
  "America/Santiago",
  "Africa/Cairo",
  "Asia/Beirut",
  "Australia/Lord_Howe",
  "Pacific/Auckland",
  "Antarctica/Troll",
]

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

const DAY = 24 * HOUR

/** Made once for each zone: making one costs more than a hundred uses. */
const formats = new Map<string, Intl.DateTimeFormat>()

const OPTIONS = { dateStyle: "short", timeStyle: "medium" } as const

/** What a clock shows there, from the text that people read. */
export function shownIn(timeZone: string, moment: number): number {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat("sv-SE", { ...OPTIONS, timeZone })
  formats.set(timeZone, format)
  return Date.parse(`${format.format(moment).replace(" ", "T")}Z`)
}

/** The clock changes of a zone in 2027: of each day that differs the minutes, one by one. */
export function changesOf(zone: string) {
  const found: { moment: number; by: number }[] = []
  const offset = (moment: number) => shownIn(zone, moment) - moment
  const end = Date.UTC(2028, 0)
  for (let day = Date.UTC(2027, 0); day < end; day += DAY) {
    if (offset(day) === offset(day + DAY)) continue
    for (let moment = day; moment < day + DAY; moment += MINUTE) {
      const by = offset(moment + MINUTE) - offset(moment)
      if (by !== 0) found.push({ moment: moment + MINUTE, by })
    }
  }
  return found
}
