import type { Action, Context } from "../lib/context"
import {
  CsvReader,
  type CsvRecord,
  LineReader,
  LONGEST_RECORD,
  plainCell,
  type TextLine,
} from "../lib/csv"
import { exits, Failure, usage } from "../lib/errors"
import {
  type ImportLine,
  type ImportOptions,
  importLines,
  patiently,
  type RefusedLine,
  textOf,
} from "../lib/file-import"

interface SubscriberImport extends ImportOptions {
  map?: string[]
  mode?: string
  format?: string
}

/** One line of the file. Its name is the external id. */
interface SubscriberLine extends ImportLine {
  fields: Record<string, unknown>
}

/** Saves the subscribers of a file, in chunks. Exit 8 where some lines are refused. */
export const importSubscribers: Action<SubscriberImport> = async (context, options, path = "") => {
  const { map = [], mode = "upsert" } = options
  if (mode !== "upsert" && mode !== "skip") throw usage("--mode is upsert or skip")
  const reading: Reading = {
    path,
    format: formatOf(path, options),
    mapped: mappingOf(map),
    left_out: new Set(),
  }
  if (context.flags.dryRun) return look(context, reading)
  return importLines<SubscriberLine>(context, {
    ...{ path, options, noun: "subscribers", name: "external_id" },
    settings: { ...reading, path: null, mapped: [...reading.mapped], left_out: undefined, mode },
    counts: { created: 0, updated: 0, skipped: 0 },
    lines: () => linesOf(reading),
    async enter(lines, key, counts) {
      await notifyLeftOut(context, reading)
      return save(context, lines, { key, mode, counts })
    },
    done: ({ created, updated, skipped }) =>
      `${created} added, ${updated} saved before, ${skipped} skipped`,
  })
}

/** Once: the file was read to its end before, or at least its head. */
async function notifyLeftOut({ output }: Context, { left_out }: Reading): Promise<void> {
  if (left_out.size > 0)
    await output.note(`not read, because no field is called so: ${namesOf(left_out)}`)
  left_out.clear()
}

const namesOf = (names: Iterable<string>) => [...names].slice(0, 20).join(", ")

interface ChunkSaving {
  key: string
  mode: "upsert" | "skip"
  counts: Record<string, number>
}

/**
 * Sends lines in one request. When the server cannot read the request, it sends each half alone. So lines
 * with many columns are imported, and only the broken line is refused.
 */
async function save(
  context: Context,
  lines: SubscriberLine[],
  saving: ChunkSaving,
): Promise<RefusedLine[]> {
  const [first] = lines
  if (first === undefined) return []
  try {
    return await saveAll(context, lines, saving)
  } catch (error) {
    if (!(error instanceof Failure) || !UNREADABLE.has(error.code)) throw error
    if (lines.length === 1) return [{ ...first, code: error.code, message: error.message }]
    const half = Math.ceil(lines.length / 2)
    const before = await save(context, lines.slice(0, half), { ...saving, key: `${saving.key}a` })
    const after = await save(context, lines.slice(half), { ...saving, key: `${saving.key}b` })
    return [...before, ...after]
  }
}

const UNREADABLE = new Set(["invalid_json", "payload_too_large"])

async function saveAll(
  context: Context,
  lines: SubscriberLine[],
  { key, mode, counts }: ChunkSaving,
): Promise<RefusedLine[]> {
  const body = { subscribers: lines.map(({ fields }) => fields) as never, mode }
  const headers = { "idempotency-key": key }
  const client = context.client()
  const { data } = await patiently(context, () =>
    client.call("POST /v1/subscribers/bulk", { body, headers }),
  )
  for (const name of ["created", "updated", "skipped"] as const)
    counts[name] = (counts[name] ?? 0) + data[name]
  return data.failed.flatMap(({ index, error }) => {
    const one = lines[index]
    // The place in the request says nothing here: the line of the file stands beside it.
    const message = error.message.replaceAll(/subscribers\.\d+\./g, "")
    return one ? [{ ...one, code: error.code, message }] : []
  })
}

interface Reading {
  path: string
  format: "csv" | "ndjson"
  mapped: ColumnMapping
  /** Columns that fill no field, and that --map does not leave out. */
  left_out: Set<string>
}

function formatOf(path: string, { format }: SubscriberImport): "csv" | "ndjson" {
  if (format === "csv" || format === "ndjson") return format
  if (format !== undefined) throw usage(`--format "${format}" is neither csv nor ndjson`)
  return /\.(ndjson|jsonl)$/i.test(path) ? "ndjson" : "csv"
}

async function* linesOf(reading: Reading): AsyncGenerator<SubscriberLine> {
  const { read, end } = reading.format === "csv" ? csvLines(reading) : jsonLines()
  for await (const text of textOf(reading.path)) yield* read(text)
  yield* end()
}

function csvLines({ mapped, left_out }: Reading) {
  const reader = new CsvReader()
  let fields: string[] | undefined
  const lines = (records: CsvRecord[]) =>
    records.flatMap((record) => {
      if (fields !== undefined) return [ofCells(record, fields)]
      fields = fieldsOf(record.cells, mapped)
      for (const head of unreadHeads(record.cells, fields, mapped)) left_out.add(head)
      requireExternalId(record.cells, fields)
      return []
    })
  return { read: (text: string) => lines(reader.push(text)), end: () => lines(reader.end()) }
}

/** An empty cell says nothing: the field stays as it is. */
function ofCells({ line, cells, length }: CsvRecord, columns: string[]): SubscriberLine {
  const fields: Record<string, unknown> = {}
  const metadata: Record<string, unknown> = {}
  for (const [at, field] of columns.entries()) {
    const cell = plainCell(cells[at] ?? "").trim()
    if (cell === "" || field === "") continue
    if (field === "tags")
      fields.tags = cell
        .split(/[,;|]/)
        .map((tag) => tag.trim())
        .filter(Boolean)
    else if (field === "metadata") Object.assign(metadata, metadataIn(cell))
    else if (field.startsWith("metadata.")) metadata[field.slice("metadata.".length)] = cell
    else fields[field] = cell
  }
  if (Object.keys(metadata).length > 0) fields.metadata = metadata
  const name = String(fields.external_id ?? "")
  const refused = problemOf(cells, columns)
  return { line, name, length, fields, ...(refused !== undefined && { refused }) }
}

function problemOf(cells: string[], columns: string[]): string | undefined {
  if (cells.length > columns.length)
    return `The line has ${cells.length} cells, and the head ${columns.length}.`
  const metadata = (cells[columns.indexOf("metadata")] ?? "").trim()
  return metadata.startsWith("{") && hasChangedNumber(metadata) ? CHANGED : undefined
}

function metadataIn(cell: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(cell)
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // It is no JSON: the text itself is kept, as that of a list.
  }
  return { metadata: cell }
}

function jsonLines() {
  const reader = new LineReader()
  const lines = (found: TextLine[]) =>
    found.flatMap((one) => {
      const plain = (one.line === 1 ? one.text.replace(/^\ufeff/, "") : one.text).trim()
      return plain === "" ? [] : [ofJson({ ...one, text: plain })]
    })
  return { read: (text: string) => lines(reader.push(text)), end: () => lines(reader.end()) }
}

function ofJson({ line, text, is_too_long }: TextLine): SubscriberLine {
  const length = text.length
  const refused = (why: string) => ({
    line,
    name: text.slice(0, 80),
    length: 80,
    fields: {},
    refused: why,
  })
  if (is_too_long) return refused(`The line has more than ${LONGEST_RECORD} characters.`)
  if (hasChangedNumber(text)) return refused(CHANGED)
  try {
    const fields = JSON.parse(text) as Record<string, unknown>
    if (typeof fields === "object" && fields !== null && !Array.isArray(fields))
      return { line, name: String(fields.external_id ?? ""), length, fields }
  } catch {
    // Told like every other line that cannot be imported.
  }
  return refused("The line is not a JSON object.")
}

const CHANGED = "JSON cannot carry a number of the line exactly. Write it as a string."

/** What may have more digits than a double, or be beyond its bounds: all else is read as it is. */
const LONG_NUMBER = /\d{16}|\d[eE]/

/** Whether the text has an integer that a double does not hold, or a number beyond its bounds (RFC 8259, section 6). */
function hasChangedNumber(text: string): boolean {
  if (!LONG_NUMBER.test(text)) return false
  let has_changed = false
  const look = (_name: string, value: unknown, { source = "" }: { source?: string }) => {
    if (typeof value !== "number") return value
    const is_integer = /^-?\d+$/.test(source)
    if (!Number.isFinite(value) || (is_integer && BigInt(source) !== BigInt(value)))
      has_changed = true
    return value
  }
  try {
    JSON.parse(text, look as (name: string, value: unknown) => unknown)
  } catch {
    return false // no JSON, which is told in other words
  }
  return has_changed
}

const SHOWN = 3

/** `--dry-run`: reads the whole file, and sends nothing. Only the server can check the values. */
async function look(context: Context, reading: Reading) {
  const sample: Record<string, unknown>[] = []
  let [lines, refused] = [0, 0]
  for await (const one of linesOf(reading)) {
    lines += 1
    if (one.refused !== undefined || one.name === "") refused += 1
    else if (sample.length < SHOWN) sample.push(one.fields)
  }
  const left_out = [...reading.left_out]
  await context.output.record({ dry_run: true, lines, refused, left_out, sample }, () =>
    [
      ...(left_out.length > 0 ? [`Columns that fill no field: ${namesOf(left_out)}`] : []),
      `${lines} lines, of which ${refused} cannot be read or have no external id. Nothing was sent.`,
      "The server checks the other lines, and their values, when it imports them. The first ones:",
      ...sample.map((fields) => JSON.stringify(fields)),
    ].join("\n"),
  )
  return exits.done
}

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
type ColumnMapping = ReadonlyMap<string, string>

/** `E-Mail=email` and `Plan=metadata.plan`; a column that is mapped to nothing is left out. */
function mappingOf(given: readonly string[]): Map<string, string> {
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
function fieldsOf(heads: readonly string[], mapped: ColumnMapping): string[] {
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
const unreadHeads = (heads: string[], fields: string[], mapped: ColumnMapping): string[] =>
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
function requireExternalId(heads: string[], fields: string[]): void {
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
