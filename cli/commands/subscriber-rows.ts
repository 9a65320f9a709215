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
}

/** Fields that are none of a subscriber: others follow from them. */
const OTHERS = new Set(["first_name", "last_name", "address", ...Object.keys(STANDING_FIELDS)])

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
    else if (!OTHERS.has(field)) fields[field] = value
  }
  refused ??= addAddress(fields, values, columns)
  const parts = [values.get("first_name"), values.get("last_name")].filter(Boolean)
  if (parts.length > 0) fields.name ??= parts.join(" ")
  if (typeof fields.name === "string") fields.name = fields.name.replaceAll(/\s+/g, " ")
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
  const has_id = columns.has("external_id") || fields.external_id !== undefined
  if (!has_id && !columns.has("email") && values.has("address"))
    fields.email ??= values.get("address")
  if (typeof fields.email === "string") {
    const [, bare = fields.email] = /<([^<>]*)>\s*$/.exec(fields.email) ?? []
    fields.external_id ??= bare.trim().toLowerCase()
  } else if (columns.has("email") || fields.external_id === undefined)
    return "The line has no email address."
  if (typeof fields.external_id === "number") fields.external_id = String(fields.external_id)
  return undefined
}

/** A number that names no country reaches nobody. It is kept as metadata, so the person is not refused for it. */
function addPhone(fields: Record<string, unknown>, metadata: Record<string, unknown>): void {
  const { phone } = fields
  if (typeof phone !== "string") return
  const plain = phone.replaceAll(/[\s().\u00a0/-]/g, "").replace(/^00/, "+")
  if (/^\+[1-9]\d{6,14}$/.test(plain)) fields.phone = plain
  else [fields.phone, metadata.phone] = [undefined, phone]
}

/** A comma, semicolon or `|` separates two tags. A tag in quotes may have such a sign. Brackets may enclose the list. */
function tagsOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((tag) => tag?.name ?? tag)
  const text = String(value ?? "").replace(/^\[(.*)\]$/s, "$1")
  return [...text.matchAll(/\s*"((?:[^"]|"")*)"\s*(?=[,;|]|$)|[^,;|]+/g)]
    .map(([tag, quoted]) => (quoted?.replaceAll('""', '"') ?? tag).trim())
    .filter(Boolean)
}

/** Returns why the line is refused. */
function addMetadata(metadata: Record<string, unknown>, value: unknown): string | undefined {
  const { object, refused } = typeof value === "string" ? parseObject(value) : { object: value }
  Object.assign(metadata, object ?? (value === null || value === "null" ? {} : { metadata: value }))
  return refused === INEXACT ? refused : undefined
}
