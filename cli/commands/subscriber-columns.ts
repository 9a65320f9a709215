import { exits, Failure, usage } from "../lib/errors"

/** What a column can fill, beside `metadata.NAME`. */
const FIELDS = [
  ...["external_id", "email", "phone", "name", "avatar_url", "locale", "timezone", "tags"],
  ...["metadata"],
]

/** Heads of columns that other systems write, without case, spaces, hyphens and underscores. */
const HEADS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ externalid: "external_id", id: "external_id", userid: "external_id" },
    ...{ customerid: "external_id", subscriberid: "external_id" },
    ...{ email: "email", emailaddress: "email", mail: "email" },
    ...{ phone: "phone", phonenumber: "phone", mobile: "phone" },
    ...{ name: "name", fullname: "name", avatarurl: "avatar_url", avatar: "avatar_url" },
    ...{ locale: "locale", language: "locale", timezone: "timezone", tags: "tags" },
  }),
)

/** Fields by the head of their column, as --map gives them. */
export type ColumnMapping = ReadonlyMap<string, string>

/** `E-Mail=email` and `Plan=metadata.plan`; a column that is mapped to nothing is left out. */
export function mappingOf(given: readonly string[]): Map<string, string> {
  return new Map(
    given.map((text) => {
      const at = text.lastIndexOf("=")
      const field = text.slice(at + 1)
      if (at < 1) throw usage(`--map "${text}" is not COLUMN=FIELD`)
      if (field !== "" && !isField(field))
        throw usage(
          `--map "${text}": there is no field ${field}`,
          `fields: ${FIELDS.join(", ")}, metadata.NAME`,
        )
      return [plainHead(text.slice(0, at)), field]
    }),
  )
}

const isField = (name: string) => FIELDS.includes(name) || /^metadata\../.test(name)

const plainHead = (head: string) =>
  head
    .trim()
    .toLowerCase()
    .replaceAll(/[\s_-]/g, "")

/**
 * The field that each column fills; "" where it fills none. A column that --map names comes before one with the
 * name of the field, and that one before one with a usual name. Throws exit 7 where two would fill one field.
 */
export function fieldsOf(heads: readonly string[], mapped: ColumnMapping): string[] {
  const fields = heads.map(() => "")
  const guesses: ((head: string) => string | undefined)[] = [
    (head) => mapped.get(plainHead(head)),
    (head) => (isField(head.trim()) ? head.trim() : undefined),
    (head) => HEADS.get(plainHead(head)),
  ]
  const free = new Set(heads.keys())
  for (const guess of guesses) {
    const taken = new Set(fields)
    const found = [...free].flatMap((at) => {
      const field = guess(heads[at] ?? "")
      return field === undefined ? [] : [{ at, field }]
    })
    for (const { at, field } of found) {
      free.delete(at)
      if (field === "" || taken.has(field)) continue
      const other = fields.indexOf(field)
      if (other !== -1) throw twoColumns(field, [heads[other] ?? "", heads[at] ?? ""])
      fields[at] = field
    }
  }
  return fields
}

/** The columns that fill no field, and that --map does not leave out. */
export const unreadHeads = (heads: string[], fields: string[], mapped: ColumnMapping): string[] =>
  heads
    .filter((head, at) => fields[at] === "" && !mapped.has(plainHead(head)))
    .map((head) => head.trim())
    .filter(Boolean)

function twoColumns(field: string, heads: string[]): Failure {
  const [one, other] = heads.map((head) => JSON.stringify(head.trim()))
  const text = `FILE: the columns ${one} and ${other} both hold the ${field}.`
  const hint = `choose one with --map COLUMN=${field}, or leave one out with --map COLUMN=`
  return new Failure(exits.invalid, "two_columns", text, { hint })
}

/** Throws exit 7 where no column names the subscribers. */
export function demandExternalId(heads: string[], fields: string[]): void {
  if (fields.includes("external_id")) return
  const columns = heads.slice(0, 20).join(", ")
  throw new Failure(
    exits.invalid,
    "missing_column",
    `FILE: no column holds the external id: ${columns}`,
    {
      hint: "name it with --map COLUMN=external_id; the first line of the file names the columns",
    },
  )
}
