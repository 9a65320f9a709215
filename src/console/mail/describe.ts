/** `1 mail`, `2,000 mails`. */
export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`

/** `4.1 KB`: as people read a number of bytes. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const power = bytes < 999_500 ? 1 : bytes < 999_500_000 ? 2 : 3
  const value = bytes / 1000 ** power
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[power]}`
}

const UNITS = ["B", "KB", "MB", "GB"]

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `now`, `5 min`, `3 h`, or the date: how long ago it was. */
export function agoText(at: string, now_ms: number): string {
  const age = now_ms - Date.parse(at)
  if (!Number.isFinite(age)) return at
  if (age < MINUTE) return "now"
  if (age < HOUR) return `${Math.floor(age / MINUTE)} min`
  if (age < DAY) return `${Math.floor(age / HOUR)} h`
  return at.slice(0, 10)
}

/** The time to the second, in the words of the reader's system. */
export const timeText = (at: string): string => new Date(at).toLocaleString()

type Field = string | string[] | undefined

/** The addresses of a header field. A comma inside a quoted name separates none. */
export function addressesOf(field: Field): string[] {
  const found = [""]
  let is_quoted = false
  for (const part of [field ?? ""].flat().join(",").split(",")) {
    if (is_quoted) found.push(`${found.pop()},${part}`)
    else found.push(part)
    is_quoted = is_quoted !== hasOpenQuote(part)
  }
  return found.map((one) => one.trim()).filter(Boolean)
}

const hasOpenQuote = (text: string) => text.replaceAll(/\\./g, "").split('"').length % 2 === 0

/** The addresses that the field names beside `address`, which it names as well; else that address alone. */
export function recipientsOf(address: string, field: Field): string[] {
  const named = namedWith(address, field)
  return named.length > 1 ? named : [address]
}

const LONGEST_NAMED = 320

/** The address with the name that a header field gives it, where the field is about this address alone. */
export function namedAddress(address: string, field: Field): string {
  const [only = "", ...others] = namedWith(address, field)
  return others.length === 0 && only.length <= LONGEST_NAMED ? only : address
}

/** All addresses of a field that names this one; none of another field. */
function namedWith(address: string, field: Field): string[] {
  const named = addressesOf(field)
  const bare = address.toLowerCase()
  const isThis = (one: string) =>
    one.toLowerCase() === bare || one.toLowerCase().endsWith(`<${bare}>`)
  return named.some(isThis) ? named : [address]
}

/** `Gmail (webmail, iOS), Outlook.com`: programs with the systems of each in one bracket, in their order. */
export function programsText(names: readonly string[]): string {
  const parts = names.map((name) => /^(.+) \(([^()]+)\)$/.exec(name) ?? [name, name])
  return [...Map.groupBy(parts, ([, program]) => program)]
    .map(([program, rows]) => {
      const systems = rows.flatMap(([, , system]) => system ?? [])
      return systems.length > 0 ? `${program} (${systems.join(", ")})` : program
    })
    .join(", ")
}
