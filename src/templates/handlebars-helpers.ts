import { asCurrency, asDate, asNumber, pluralForm } from "./formats"
import { plain, SafeString, Unfit } from "./handlebars"

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
  return new SafeString(`<a href="${escapeHtml(url)}">${escapeHtml(label)}</a>`)
}

const HTML: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#x27;",
}
const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (one) => HTML[one] ?? one)

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
