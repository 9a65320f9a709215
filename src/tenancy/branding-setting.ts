import { type TSchema, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import type { Branding } from "../identity/tables"
import { isName } from "../lib/address"
import { maybe, text } from "../lib/record-fields"
import { isLonger } from "../lib/text"

const MOST_NAME_CHARACTERS = 100
const MOST_URL_CHARACTERS = 2048

export const brandingAnswer = t.Object(
  {
    name: maybe(text("Acme")),
    logo_url: maybe(text("https://example.com/logo.png")),
    primary_color: maybe(text("#2457c5")),
    support_url: maybe(text("https://example.com/help")),
  },
  { description: "What pages for recipients show: name, logo, color of buttons, link to help." },
)

const orNull = <Schema extends TSchema>(schema: Schema) => t.Union([schema, t.Null()])

export const brandingPatch = t.Union([
  t.Object({
    name: t.Optional(orNull(t.String({ maxLength: MOST_NAME_CHARACTERS }))),
    logo_url: t.Optional(orNull(t.String({ description: "An https:// URL of an image." }))),
    primary_color: t.Optional(orNull(t.String({ description: "A color such as #2457c5." }))),
    support_url: t.Optional(orNull(t.String({ description: "An https:// URL." }))),
  }),
  t.Null(),
])

type Reader = (given: string) => string | undefined

const READERS: Record<keyof Branding, { read: Reader; hint: string }> = {
  name: {
    read: (given) => (isLine(given) ? given.trim() : undefined),
    hint: `The value must be one line of 1 to ${MOST_NAME_CHARACTERS} characters.`,
  },
  logo_url: { read: httpsUrl, hint: "The value must be an https:// URL without a password." },
  primary_color: {
    read: (given) => (/^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(given) ? given : undefined),
    hint: "The value must be a color in hex, such as #2457c5.",
  },
  support_url: { read: httpsUrl, hint: "The value must be an https:// URL without a password." },
}

/** Reads what a change says of the branding. What it does not name stays. */
export function readBranding(
  given: unknown,
  path: string,
  problems: Problems,
): Partial<Branding> | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    return problems.add(path, "invalid", "The value must be an object.")
  }
  const wanted: Partial<Branding> = {}
  for (const [name, value] of Object.entries(given)) {
    if (!isField(name)) {
      const known = Object.keys(READERS).join(", ")
      problems.add(
        `${path}.${name}`,
        "unknown_field",
        `There is no such setting. There are ${known}.`,
      )
      continue
    }
    const { read, hint } = READERS[name]
    const kept = typeof value === "string" ? read(value) : undefined
    if (value !== null && kept === undefined) problems.add(`${path}.${name}`, "invalid", hint)
    else wanted[name] = kept ?? null
  }
  return wanted
}

const isField = (name: string): name is keyof Branding => Object.hasOwn(READERS, name)

const isLine = (given: string) =>
  given.trim() !== "" && isName(given) && !isLonger(given, MOST_NAME_CHARACTERS)

/** As a browser will read it. */
function httpsUrl(given: string): string | undefined {
  const url = given.length <= MOST_URL_CHARACTERS ? URL.parse(given) : null
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "") return undefined
  return url.href.length <= MOST_URL_CHARACTERS ? url.href : undefined
}
