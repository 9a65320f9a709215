import type { FileColumns, FileRow } from "../lib/file-columns"
import type { ImportLine } from "../lib/file-import"
import { INEXACT, parseObject } from "../lib/json-texts"
import { STANDING_FIELDS, standingOf } from "../lib/standing"

/** The columns of a file of people, as services and spreadsheets call them. */
export const COLUMNS: FileColumns = {
  keys: ["external_id", "email", "address"],
  fields: {
    external_id: ["id", "userid", "customerid", "subscriberid"],
    email: ["emailaddress", "mail"],
    phone: ["phonenumber", "mobile"],
    name: ["fullname", "displayname"],
    avatar_url: ["avatar"],
    locale: ["language"],
    timezone: [],
    tags: [],
    metadata: ["attributes", "attribs", "vars", "attributesdata", "customfields", "properties"],
    first_name: ["fname", "givenname"],
    last_name: ["lname", "surname", "familyname"],
    address: ["recipient"], // of an email where no other column has an id or an email
    ...STANDING_FIELDS,
  },
  more: /^metadata\../,
  alone: ["external_id", "email"],
  headless: "email",
}

/** Fields that are none of a subscriber: others follow from them. */
const READ_TOGETHER = new Set([
  "first_name",
  "last_name",
  "address",
  ...Object.keys(STANDING_FIELDS),
])

/**
 * A subscriber as the server takes it. An empty cell says nothing: the field stays as it is. Where there is no id, the
 * address is the id, in lower case: so the files of two services mean one person. `unread` gets words that are not known.
 */
export function subscriberLine(row: FileRow, unread: Set<string>): ImportLine {
  const { line, length, values, columns } = row
  const fields: Record<string, unknown> = {}
  const metadata: Record<string, unknown> = {}
  let refused = row.refused
  for (const [field, value] of values) {
    if (field === "tags") fields.tags = tagsOf(value)
    else if (field === "metadata") refused ??= addMetadata(metadata, value)
    else if (field.startsWith("metadata.")) metadata[field.slice("metadata.".length)] = value
    else if (!READ_TOGETHER.has(field)) fields[field] = value
  }
  refused ??= addAddress(fields, values, columns)
  addName(fields, values)
  addPhone(fields, metadata)
  const standing = standingOf(values)
  if (standing && standing !== "active") fields.status = standing
  const status = values.get("status")
  if (status && !standing && unread.size < MOST_WORDS) unread.add(`status ${String(status)}`)
  if (Object.keys(metadata).length > 0) fields.metadata = metadata
  return { line, name: String(fields.external_id ?? ""), length, fields, refused }
}

const MOST_WORDS = 20

/** Adds email and id. Returns why there are none: where a column is the email, each line has one. */
function addAddress(
  fields: Record<string, unknown>,
  values: ReadonlyMap<string, unknown>,
  columns: ReadonlySet<string>,
): string | undefined {
  const { external_id } = fields
  const has_other = columns.has("email") || columns.has("external_id") || external_id !== undefined
  if (!has_other) fields.email ??= values.get("address")
  const { email } = fields
  if (typeof email === "string") {
    const [, bare = email] = /<([^<>]*)>\s*$/.exec(email) ?? []
    fields.external_id ??= bare.trim().toLowerCase()
  } else {
    if (email === undefined) delete fields.email
    if (columns.has("email") || fields.external_id === undefined)
      return "The line has no email address."
  }
  if (typeof external_id === "number") fields.external_id = String(external_id)
  return undefined
}

function addName(fields: Record<string, unknown>, values: ReadonlyMap<string, unknown>): void {
  const whole = [values.get("first_name"), values.get("last_name")]
    .filter((part) => typeof part === "string")
    .join(" ")
  if (whole !== "") fields.name ??= whole
  if (typeof fields.name === "string") fields.name = fields.name.replaceAll(/\s+/g, " ")
}

/** A number that names no country reaches nobody. It is kept as metadata, so the person is not refused for it. */
function addPhone(fields: Record<string, unknown>, metadata: Record<string, unknown>): void {
  const { phone } = fields
  if (typeof phone !== "string") return
  const plain = phone.replaceAll(/[\s().\u00a0/-]/g, "").replace(/^00/, "+")
  if (/^\+[1-9]\d{6,14}$/.test(plain)) fields.phone = plain
  else {
    delete fields.phone
    metadata.phone ??= phone
  }
}

/** Separated by comma, semicolon or `|`, in quotes where a tag has one of these itself, or a list of JSON. */
function tagsOf(value: unknown): unknown {
  const list = typeof value === "string" && value.startsWith("[") ? listIn(value) : value
  if (Array.isArray(list)) return list.map((tag) => (tag as { name?: unknown } | null)?.name ?? tag)
  return [...String(list ?? "").matchAll(/"((?:[^"]|"")*)"|[^,;|"]+/g)]
    .map(([text, quoted]) => (quoted?.replaceAll('""', '"') ?? text).trim())
    .filter(Boolean)
}

function listIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Returns why the line is refused. */
function addMetadata(metadata: Record<string, unknown>, value: unknown): string | undefined {
  if (value === null) return undefined
  if (typeof value !== "string") {
    Object.assign(metadata, value)
    return undefined
  }
  const { object, refused } = parseObject(value)
  Object.assign(metadata, object ?? { metadata: value })
  return refused === INEXACT ? refused : undefined
}
