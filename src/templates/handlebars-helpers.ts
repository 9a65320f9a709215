import { isLocale, isTimeZone } from "../lib/locale"
import { plain, SafeString, Unfit } from "./handlebars"
import { momentFrom } from "./variables"

const MOST_FORMATTERS = 500

/** Formatters are slow to make, and the same few serve all mails. */
function remembered<Made>(make: (...words: string[]) => Made): (...words: string[]) => Made {
  const known = new Map<string, Made>()
  return (...words) => {
    const key = words.join("\n")
    const made = known.get(key) ?? make(...words)
    if (known.size >= MOST_FORMATTERS) known.clear()
    known.set(key, made)
    return made
  }
}

const isTag = remembered((tag = "") => isLocale(tag))
const isZone = remembered((zone = "") => isTimeZone(zone))

function localeOf(given: unknown): string {
  if (typeof given === "string" && isTag(given)) return given
  throw new Unfit("failed", `"${toResponse(given)}" is not a language tag, such as en or de-AT.`)
}

function timezoneOf(given: unknown): string {
  if (typeof given === "string" && isZone(given)) return given
  throw new Unfit("failed", `"${toResponse(given)}" is not a time zone, such as Europe/Vienna.`)
}

const MOST_SHOWN = 50

/** A value in a message: short, and never an object. */
const toResponse = (value: unknown) =>
  (typeof value === "object" && value !== null ? "an object" : String(value)).slice(0, MOST_SHOWN)

function numberOf(given: unknown, helper: string): number {
  const value = typeof given === "string" && given.trim() !== "" ? Number(given) : given
  if (typeof value === "number" && Number.isFinite(value)) return value
  throw new Unfit("failed", `${helper} needs a number, but "${toResponse(given)}" is none.`)
}

const STYLES = ["short", "medium", "long", "full"] as const

type DateStyle = (typeof STYLES)[number]

const styled = remembered(
  (locale = "", timeZone = "", date = "", time = "") =>
    new Intl.DateTimeFormat(locale, {
      timeZone,
      ...(date !== "" && { dateStyle: date as DateStyle }),
      ...(time !== "" && { timeStyle: time as DateStyle }),
    }),
)

/**
 * A time in a form for people: `short`, `medium`, `long` and `full` are dates, `time` and `datetime` have
 * the hour, `iso` is ISO 8601 in UTC; any other text is a pattern such as `dd.MM.yyyy HH:mm`. The value is
 * ISO 8601 or epoch milliseconds.
 */
function asDate(
  given: unknown,
  { format, timezone, locale }: Record<"format" | "timezone" | "locale", unknown>,
): string {
  const moment = new Date(momentFrom(given))
  if (Number.isNaN(moment.getTime())) {
    throw new Unfit("failed", `date needs a time of ISO 8601, but "${toResponse(given)}" is none.`)
  }
  const word = String(format)
  const place = [localeOf(locale), timezoneOf(timezone)] as const
  if (word === "iso") return moment.toISOString()
  if (word === "time") return styled(...place, "", "short").format(moment)
  if (word === "datetime") return styled(...place, "long", "short").format(moment)
  if (STYLES.some((style) => style === word)) return styled(...place, word, "").format(moment)
  return inPattern(moment, word, ...place)
}

const TOKEN = /'([^']*)'|yyyy|yy|MMMM|MMM|MM|M|dd|d|EEEE|EEE|HH|H|hh|h|mm|ss|a/g
const LONGEST_PATTERN = 100

/** The words of Unicode Technical Standard 35 that dates of mails need. Other letters are an error. */
function inPattern(moment: Date, pattern: string, locale: string, timezone: string): string {
  const rest = pattern.replace(TOKEN, "")
  if (/[A-Za-z]/.test(rest) || pattern.length > LONGEST_PATTERN) {
    const names = `short, medium, long, full, time, datetime, iso`
    throw new Unfit(
      "failed",
      `"${toResponse(pattern)}" is no format of date. Use ${names}, or a pattern.`,
    )
  }
  const parts = numericParts(moment, timezone)
  return pattern.replace(TOKEN, (token, quoted?: string) => {
    if (quoted !== undefined) return quoted === "" ? "'" : quoted
    return parts[token] ?? worded(token, moment, locale, timezone)
  })
}

const numeric = remembered(
  (timeZone = "") =>
    new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn", {
      timeZone,
      hourCycle: "h23",
      ...{ year: "numeric", month: "2-digit", day: "2-digit" },
      ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
    }),
)

function numericParts(moment: Date, timezone: string): Record<string, string> {
  const found = numeric(timezone).formatToParts(moment)
  const all = new Map<string, string>(found.map(({ type, value }) => [type, value]))
  const of = (type: string) => all.get(type) ?? ""
  const bare = (text: string) => String(Number(text))
  const hour = Number(of("hour")) % 24
  const half = String(hour % 12 === 0 ? 12 : hour % 12)
  return {
    ...{ yyyy: of("year").padStart(4, "0"), yy: of("year").slice(-2) },
    ...{ MM: of("month"), M: bare(of("month")), dd: of("day"), d: bare(of("day")) },
    ...{ HH: String(hour).padStart(2, "0"), H: String(hour), hh: half.padStart(2, "0"), h: half },
    ...{ mm: of("minute"), ss: of("second"), a: hour < 12 ? "AM" : "PM" },
  }
}

const WORDS: Record<string, Intl.DateTimeFormatOptions> = {
  MMMM: { month: "long" },
  MMM: { month: "short" },
  EEEE: { weekday: "long" },
  EEE: { weekday: "short" },
}

const wordsOf = remembered(
  (token = "", locale = "", timeZone = "") =>
    new Intl.DateTimeFormat(locale, { timeZone, ...WORDS[token] }),
)

const worded = (token: string, moment: Date, locale: string, timezone: string) =>
  wordsOf(token, locale, timezone).format(moment)

const MOST_DECIMALS = 20

const numbers = remembered((locale = "", decimals = "") => {
  const places =
    decimals === ""
      ? {}
      : { minimumFractionDigits: Number(decimals), maximumFractionDigits: Number(decimals) }
  return new Intl.NumberFormat(locale, places)
})

/** A number in the form of a language, with so many decimals, or as many as it has. */
function asNumber(given: unknown, decimals: unknown, locale: unknown): string {
  const value = numberOf(given, "number")
  if (decimals === undefined) return numbers(localeOf(locale), "").format(value)
  const places = numberOf(decimals, "number")
  if (Number.isInteger(places) && places >= 0 && places <= MOST_DECIMALS) {
    return numbers(localeOf(locale), String(places)).format(value)
  }
  throw new Unfit("failed", `number takes 0 to ${MOST_DECIMALS} decimals.`)
}

const currencies = remembered(
  (locale = "", currency = "") => new Intl.NumberFormat(locale, { style: "currency", currency }),
)

/** An amount in whole units of an ISO 4217 currency, such as EUR. */
function asCurrency(given: unknown, currency: unknown, locale: unknown): string {
  const value = numberOf(given, "currency")
  const code = String(currency)
  if (/^[A-Za-z]{3}$/.test(code))
    return currencies(localeOf(locale), code.toUpperCase()).format(value)
  throw new Unfit("failed", "currency needs a code of three letters, such as EUR.")
}

const plurals = remembered((locale = "") => new Intl.PluralRules(locale))

/** The form that a language uses with the number: of one, two, few, many, or other. */
function pluralForm(given: unknown, forms: Record<string, unknown>, locale: unknown): string {
  const count = numberOf(given, "plural")
  const form = forms[plurals(localeOf(locale)).select(count)] ?? forms.other
  if (typeof form === "string") return form
  throw new Unfit("failed", 'plural needs the forms, such as {{plural count "item" "items"}}.')
}

/** What the template that is being rendered says of all its texts. */
export interface HelperSetting {
  mode: "html" | "text"
  locale: string
  timezone: string
}

type Hash = Record<string, unknown>
type Helper = (given: unknown[], hash: Hash, setting: HelperSetting) => unknown

export const BLOCKS: ReadonlySet<string> = new Set(["if", "unless", "each", "with"])

/** As Handlebars decides in `{{#if}}`: zero, empty text and empty lists are false. */
const isTrue = (value: unknown): boolean =>
  Boolean(value) && !(Array.isArray(value) && value.length === 0)

const isNumeric = (value: unknown): boolean =>
  typeof value === "number" || (typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value))

/** The number 1 and the text "1" are equal: variables come from forms and from databases. */
const isEqual = ([one, other]: unknown[]): boolean =>
  isNumeric(one) && isNumeric(other) ? Number(one) === Number(other) : one === other

/** Numbers by their value, other texts by their characters, which is the order of ISO times, too. */
function compared([one, other]: unknown[]): number {
  if (isNumeric(one) && isNumeric(other)) return Number(one) - Number(other)
  if (typeof one !== "string" || typeof other !== "string") return Number.NaN
  return one === other ? 0 : one < other ? -1 : 1
}

const isAbsent = (value: unknown) => value === undefined || value === null || value === ""

const LONGEST_SHOWN = 10_000

function truncated([value, most, suffix = "…"]: unknown[]): string {
  const length = Number(most)
  if (!Number.isInteger(length) || length < 0 || length > LONGEST_SHOWN) {
    throw new Unfit("failed", `truncate needs a number of characters from 0 to ${LONGEST_SHOWN}.`)
  }
  const characters = [...plain(value)]
  return characters.length <= length
    ? plain(value)
    : characters.slice(0, length).join("").trimEnd() + plain(suffix)
}

const ADDRESS = /^(https?:\/\/|mailto:|tel:)/i

/** `{{link url "text"}}`: a link in html, the text with the address behind it elsewhere. */
function link([address, text]: unknown[], { mode }: HelperSetting): unknown {
  if (isAbsent(address)) return ""
  const url = plain(address)
  if (!ADDRESS.test(url)) {
    throw new Unfit(
      "failed",
      "link needs an address that begins with https:, http:, mailto: or tel:.",
    )
  }
  const label = isAbsent(text) ? url : plain(text)
  if (mode === "text") return label === url ? url : `${label} (${url})`
  return new SafeString(`<a href="${Bun.escapeHTML(url)}">${Bun.escapeHTML(label)}</a>`)
}

/** A `<` would end a script. In a string of JSON its escape says the same. */
const asJson = (value: unknown) => (JSON.stringify(value) ?? "null").replaceAll("<", "\\u003c")

const upperFirst = (text: string, locale: string) => {
  const [first = ""] = text
  return first.toLocaleUpperCase(locale) + text.slice(first.length)
}

/** The helpers of the contract that give a value, besides the blocks. */
const HELPERS = {
  eq: isEqual,
  ne: (given) => !isEqual(given),
  gt: (given) => compared(given) > 0,
  lt: (given) => compared(given) < 0,
  gte: (given) => compared(given) >= 0,
  lte: (given) => compared(given) <= 0,
  and: (given) => given.find((value) => !isTrue(value)) ?? given.at(-1),
  or: (given) => given.find(isTrue) ?? given.at(-1),
  not: ([value]) => !isTrue(value),
  default: (given) => given.find((value) => !isAbsent(value)) ?? "",
  upper: ([value], _, { locale }) => plain(value).toLocaleUpperCase(locale),
  lower: ([value], _, { locale }) => plain(value).toLocaleLowerCase(locale),
  capitalize: ([value], _, { locale }) => upperFirst(plain(value), locale),
  truncate: truncated,
  date: ([value, format, timezone, locale], hash, setting) =>
    isAbsent(value)
      ? ""
      : asDate(value, {
          format: hash.format ?? format ?? "long",
          timezone: hash.timezone ?? timezone ?? setting.timezone,
          locale: hash.locale ?? locale ?? setting.locale,
        }),
  number: ([value, decimals, locale], hash, setting) =>
    isAbsent(value)
      ? ""
      : asNumber(value, hash.decimals ?? decimals, hash.locale ?? locale ?? setting.locale),
  currency: ([value, currency, locale], hash, setting) =>
    isAbsent(value)
      ? ""
      : asCurrency(value, hash.currency ?? currency, hash.locale ?? locale ?? setting.locale),
  plural: ([value, one, other], hash, setting) =>
    isAbsent(value)
      ? ""
      : pluralForm(value, { one, other, ...hash }, hash.locale ?? setting.locale),
  json: ([value]) => asJson(value),
  urlencode: ([value]) => encodeURIComponent(plain(value).toWellFormed()),
  link: (given, _, setting) => link(given, setting),
} satisfies Record<string, Helper>

/** Helpers that compute a value. */
export const VALUE_HELPERS: ReadonlySet<string> = new Set(Object.keys(HELPERS))

/** The helpers as Handlebars calls them; `setting` tells what is being rendered at the moment. */
export const handlebarsHelpers = (setting: () => HelperSetting) =>
  Object.entries<Helper>(HELPERS).map(([name, help]) => {
    const called = (...given: unknown[]) => {
      const { hash = {} } = given.pop() as { hash?: Hash }
      return help(given, hash, setting())
    }
    return [name, called] as const
  })
