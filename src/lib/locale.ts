/** A language tag of BCP 47, such as `en` or `de-AT`. */
export function isLocale(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length === 1
  } catch {
    return false
  }
}

/**
 * A name of the time zone database, such as `Europe/Vienna`. An offset such as `+02:00` is not one.
 */
export function isTimeZone(text: string): boolean {
  if (!/^[A-Za-z]/.test(text)) return false
  try {
    new Intl.DateTimeFormat("en", { timeZone: text })
    return true
  } catch {
    return false
  }
}

/** Entries of an `Accept-Language` header that are read. */
const MOST_RANGES = 50

/**
 * The language of `offered` that a reader prefers by the `Accept-Language` header (RFC 9110, 12.5.4);
 * undefined where there is none. `de-AT` is served by `de`. A weight of 0 rules a language out.
 */
export function preferredLanguage<Language extends string>(
  header: string,
  offered: readonly Language[],
): Language | undefined {
  const ranges = header.split(",", MOST_RANGES).map((range) => {
    const [tag = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase())
    const given = parameters.find((one) => one.startsWith("q="))?.slice(2)
    return { tag: tag.split("-", 1)[0] ?? "", weight: given === undefined ? 1 : Number(given) }
  })
  const wanted = ranges.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight)
  for (const { tag } of wanted) {
    const found = offered.find((one) => one === tag)
    if (found) return found
  }
  return undefined
}
