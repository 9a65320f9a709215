import type { Action, Context } from "../lib/context"
import { LONGEST_RECORD, linesIn } from "../lib/csv"
import { type CsvColumns, type CsvFields, fieldsIn, mappingOf } from "../lib/csv-columns"
import { exits, Failure, usage } from "../lib/errors"
import {
  enterAtOnce,
  type ImportLine,
  type ImportOptions,
  importLines,
  type RefusedLine,
  textOf,
} from "../lib/file-import"

interface SubscriberImport extends ImportOptions {
  map?: string[]
  mode?: string
  format?: string
}

const COLUMNS: CsvColumns = {
  key: "external_id",
  fields: {
    external_id: ["id", "userid", "customerid", "subscriberid"],
    email: ["emailaddress", "mail"],
    phone: ["phonenumber", "mobile"],
    name: ["fullname"],
    avatar_url: ["avatar"],
    locale: ["language"],
    timezone: [],
    tags: [],
    metadata: [],
  },
  more: /^metadata\../,
}

/** Saves the subscribers of a file, in chunks. Exit 8 where some lines are refused. */
export const importSubscribers: Action<SubscriberImport> = async (context, options, path = "") => {
  const { map = [], mode = "upsert" } = options
  if (mode !== "upsert" && mode !== "skip") throw usage("--mode is upsert or skip")
  const format = formatOf(path, options)
  const mapped = mappingOf(map, COLUMNS)
  const unread = new Set<string>()
  const lines = (pieces: AsyncIterable<string>) =>
    format === "csv" ? csvLines(pieces, { ...COLUMNS, mapped, unread }) : jsonLines(pieces)
  if (context.flags.dryRun) return look(context, lines(textOf(path)), unread)
  return importLines(context, {
    ...{ path, options, noun: "subscribers", name: "external_id", lines },
    settings: { format, mapped: [...mapped], mode },
    counts: ["created", "updated", "skipped"],
    async enter(chunk, key, counts) {
      if (unread.size > 0)
        await context.output.note(`not read, because no field is called so: ${namesOf(unread)}`)
      unread.clear()
      return save(context, mode, chunk, key, counts)
    },
    done: ({ created, updated, skipped }) =>
      `${created} added, ${updated} saved before, ${skipped} skipped`,
  })
}

const namesOf = (names: Iterable<string>) => [...names].slice(0, 20).join(", ")

/**
 * Sends lines in one request. When the server cannot read the request, it sends each half alone. So lines
 * with many columns are imported, and only the broken line is refused.
 */
async function save(
  context: Context,
  mode: string,
  lines: ImportLine[],
  key: string,
  counts: Record<string, number>,
): Promise<RefusedLine[]> {
  const body = { subscribers: lines.map(({ fields }) => fields), mode }
  const bulk = { route: "POST /v1/subscribers/bulk", body, place: /subscribers\.\d+\./g } as const
  try {
    return await enterAtOnce(context, bulk, lines, key, counts)
  } catch (error) {
    if (!(error instanceof Failure) || !UNREADABLE.has(error.code)) throw error
    const { code, message } = error
    if (lines.length === 1) return lines.map((line) => ({ ...line, code, message }))
    const half = Math.ceil(lines.length / 2)
    const before = await save(context, mode, lines.slice(0, half), `${key}a`, counts)
    return [...before, ...(await save(context, mode, lines.slice(half), `${key}b`, counts))]
  }
}

const UNREADABLE = new Set(["invalid_json", "payload_too_large"])

function formatOf(path: string, { format }: SubscriberImport): "csv" | "ndjson" {
  if (format === "csv" || format === "ndjson") return format
  if (format !== undefined) throw usage(`--format "${format}" is neither csv nor ndjson`)
  return /\.(ndjson|jsonl)$/i.test(path) ? "ndjson" : "csv"
}

async function* csvLines(pieces: AsyncIterable<string>, known: CsvColumns) {
  for await (const record of fieldsIn(pieces, known)) yield ofCells(record)
}

/** An empty cell says nothing: the field stays as it is. */
function ofCells({ line, length, values, cells, columns }: CsvFields): ImportLine {
  const fields: Record<string, unknown> = {}
  const metadata: Record<string, unknown> = {}
  let refused: string | undefined
  if (cells.length > columns)
    refused = `The line has ${cells.length} cells, and the head ${columns}.`
  for (const [field, cell] of values) {
    if (field === "tags")
      fields.tags = cell
        .split(/[,;|]/)
        .map((tag) => tag.trim())
        .filter(Boolean)
    else if (field === "metadata") {
      const { object, is_exact } = parseObject(cell)
      if (!is_exact) refused ??= INEXACT
      Object.assign(metadata, object ?? { metadata: cell })
    } else if (field.startsWith("metadata.")) metadata[field.slice("metadata.".length)] = cell
    else fields[field] = cell
  }
  if (Object.keys(metadata).length > 0) fields.metadata = metadata
  return { line, name: values.get("external_id") ?? "", length, fields, refused }
}

async function* jsonLines(pieces: AsyncIterable<string>): AsyncGenerator<ImportLine> {
  for await (const { line, text } of linesIn(pieces)) {
    if (text.trim() !== "") yield ofJson(line, text)
  }
}

function ofJson(line: number, text: string): ImportLine {
  const refused = (why: string) => {
    const name = text.trim().slice(0, 80)
    return { line, name, length: name.length, fields: {}, refused: why }
  }
  if (text.length > LONGEST_RECORD)
    return refused(`The line has more than ${LONGEST_RECORD} characters.`)
  const { object, is_exact } = parseObject(text)
  if (!is_exact) return refused(INEXACT)
  if (!object) return refused("The line is not a JSON object.")
  return { line, name: String(object.external_id ?? ""), length: text.length, fields: object }
}

const INEXACT = "JSON cannot carry a number of the line exactly. Write it as a string."

/**
 * A JSON object; none where the text is something else. It is not exact where the text has an integer that a double does
 * not hold, or a number beyond its bounds (RFC 8259, section 6).
 */
function parseObject(text: string): { object?: Record<string, unknown>; is_exact: boolean } {
  let is_exact = true
  const look = (_name: string, value: unknown, { source = "" }: { source?: string }) => {
    if (typeof value !== "number") return value
    const is_integer = /^-?\d+$/.test(source)
    if (!Number.isFinite(value) || (is_integer && BigInt(source) !== BigInt(value)))
      is_exact = false
    return value
  }
  try {
    const value: unknown = JSON.parse(text, look as (name: string, value: unknown) => unknown)
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { object: value as Record<string, unknown>, is_exact }
  } catch {
    // No JSON at all is told like other JSON than an object.
  }
  return { is_exact: true }
}

const SHOWN = 3

/** `--dry-run`: reads the whole file, and sends nothing. Only the server can check the values. */
async function look(context: Context, found: AsyncIterable<ImportLine>, unread: Set<string>) {
  const sample: Record<string, unknown>[] = []
  let [lines, refused] = [0, 0]
  for await (const one of found) {
    lines += 1
    if (one.refused !== undefined || one.name === "") refused += 1
    else if (sample.length < SHOWN) sample.push(one.fields)
  }
  const left_out = [...unread]
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
