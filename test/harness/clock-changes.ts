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

/** What a clock shows there, from the text that people read. */
export function shownIn(timeZone: string, moment: number): number {
  const text = new Date(moment).toLocaleString("sv-SE", { timeZone })
  return Date.parse(`${text.replace(" ", "T")}Z`)
}

/** The clock changes of a zone in 2027, found minute by minute around each hour that differs. */
export function changesOf(zone: string) {
  const found: { moment: number; by: number }[] = []
  const offset = (moment: number) => shownIn(zone, moment) - moment
  const end = Date.UTC(2028, 0)
  for (let hour = Date.UTC(2027, 0); hour < end; hour += HOUR) {
    if (offset(hour) === offset(hour + HOUR)) continue
    for (let moment = hour; moment < hour + HOUR; moment += MINUTE) {
      const by = offset(moment + MINUTE) - offset(moment)
      if (by !== 0) found.push({ moment: moment + MINUTE, by })
    }
  }
  return found
}
