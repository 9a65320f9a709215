import { type CsvRecord, linesIn, plainCell, recordsIn } from "./csv"
import { exits, Failure, usage } from "./errors"
import { type ObjectText, objectsIn, parseObject } from "./json-texts"

/** Which field each column of a CSV file fills, and each name of a JSON object. */
export interface FileColumns {
  /** A file has a column for one of them, or it begins with an address. */
  keys: readonly string[]
  /** The fields, each with the usual names of its column beside its own; see `plainHead`. */
  fields: Readonly<Record<string, readonly string[]>>
  /** Names of more fields, such as `metadata.plan`. */
  more?: RegExp
  /** Fields by the head of their column, as --map gives them; none for a column that is left out. */
  mapped?: ReadonlyMap<string, readonly string[]>
  /** Fields that have only one column. Of the others the first cell counts that is filled, in the order of their names. */
  alone?: readonly string[]
  /** Gets the heads of columns that fill no field, and that --map does not leave out. */
  unread?: Set<string>
}

/** One line below the head, or one JSON object: what is filled, by fields. */
export interface FileRow {
  line: number
  /** Characters. */
  length: number
  /** Texts; of JSON any value. */
  values: ReadonlyMap<string, unknown>
  /** Which fields have a column; none for JSON, where each object has its own names. */
  columns: ReadonlySet<string>
  /** Why it cannot be imported. */
  refused?: string
}

/** What a file is: JSON may be a document with a list, or an object in each line. */
export type FileFormat = "csv" | "json" | "ndjson"

/** The format that a name says. None where the file itself decides. */
export const formatNamed = (path: string): FileFormat | undefined =>
  /\.(ndjson|jsonl)$/i.test(path) ? "ndjson" : undefined

/** As `--format` says, else as the name does. Throws exit 2 for another word. */
export function fileFormat(path: string, format: string | undefined): FileFormat | undefined {
  if (format === "csv" || format === "json" || format === "ndjson") return format
  if (format !== undefined) throw usage(`--format "${format}" is none of csv, json and ndjson`)
  return formatNamed(path)
}

/**
 * The rows of a file, with the fields that they fill. Without a format, a file is JSON where its first piece begins with
 * a bracket. Throws exit 7 where two columns hold one field that must not be guessed, and where none holds a key.
 */
export async function* rowsIn(
  pieces: AsyncIterable<string>,
  known: FileColumns,
  format?: FileFormat,
): AsyncGenerator<FileRow> {
  const rest = pieces[Symbol.asyncIterator]()
  const head: string = (await rest.next()).value ?? ""
  const whole = joined(head, rest)
  const usual = usualNames(known)
  const is_json = format === undefined ? /^\s*[{[]/.test(head) : format !== "csv"
  if (!is_json) yield* cellRows(recordsIn(whole), { ...known, usual })
  else
    yield* objectRows(format === "ndjson" ? linesIn(whole) : objectsIn(whole), { ...known, usual })
}

async function* joined(head: string, rest: AsyncIterator<string>) {
  yield head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

type Known = FileColumns & { usual: ReturnType<typeof usualNames> }

async function* cellRows(records: AsyncIterable<CsvRecord>, known: Known) {
  let heads: string[] | undefined
  let columns: Column[] = []
  for await (const { line, length, cells } of records) {
    const texts = cells.map((cell) => plainCell(cell).trim())
    if (texts.every((text) => text === "")) continue
    if (heads === undefined) {
      columns = columnsOf(cells, known)
      if (columns.some(({ field }) => known.keys.includes(field))) {
        addUnread(cells, columns, known)
        const plain = cells.map(plainHead)
        const missing = [...(known.mapped?.keys() ?? [])].find((head) => !plain.includes(head))
        if (missing !== undefined) throw noColumn(`is called ${missing}`, cells, known)
        heads = cells
        continue
      }
      const words = known.keys.join(" or the ").replaceAll("_", " ")
      const at = texts.findIndex((text) => /\S@\S|^\+\d+$/.test(text))
      if (at < 0) throw noColumn(`holds the ${words}`, cells, known)
      columns = [{ at, field: "email", rank: 0 }] // a list of addresses, or of phone numbers
      heads = []
    }
    const extra = heads.length > 0 && texts.slice(heads.length).some((text) => text !== "")
    const refused = extra && `The line has ${cells.length} cells, and the head ${heads.length}.`
    const fields = new Set(columns.map(({ field }) => field))
    const values = valuesOf(texts, columns)
    yield { line, length, values, columns: fields, ...(refused && { refused }) }
  }
}

async function* objectRows(found: AsyncIterable<ObjectText>, known: Known) {
  for await (const { line, text } of found) {
    if (text.trim() === "") continue
    const row = { line, length: text.length, columns: new Set<string>(), values: new Map() }
    const { object, refused } = parseObject(text)
    if (!object) {
      yield { ...row, values: new Map([[known.keys[0] ?? "", text.trim().slice(0, 80)]]), refused }
      continue
    }
    const heads = Object.keys(object)
    const columns = columnsOf(heads, known)
    addUnread(heads, columns, known)
    yield { ...row, values: valuesOf(Object.values(object), columns) }
  }
}

/** A column that fills a field. */
interface Column {
  at: number
  field: string
  rank: number
}

function valuesOf(cells: readonly unknown[], columns: readonly Column[]): Map<string, unknown> {
  const values = new Map<string, unknown>()
  for (const { at, field } of columns) {
    const cell = cells[at]
    const value = typeof cell === "string" ? cell.trim() : cell
    if (value !== "" && value !== undefined && !values.has(field)) values.set(field, value)
  }
  return values
}

/** From here on a column has one of the usual names of its field. */
const USUAL = 2

/**
 * The columns that fill a field. First comes a column that --map names, then a column with the name of the field.
 * Columns with a usual name follow, in the order of the usual names.
 */
function columnsOf(heads: readonly string[], known: Known): Column[] {
  const found = heads
    .flatMap((head, at): Column[] => {
      const [plain, name] = [plainHead(head), head.trim()]
      const mapped = known.mapped?.get(plain)
      if (mapped) return mapped.map((field) => ({ at, field, rank: 0 }))
      if (isField(name, known)) return [{ at, field: name, rank: 1 }]
      const guess = known.usual.get(plain)
      return guess ? [{ at, ...guess }] : []
    })
    .toSorted((one, other) => one.rank - other.rank)
  return found.filter((one) => !known.alone?.includes(one.field) || isBest(one, found, heads))
}

/** Throws exit 7 where another column may be meant as well. Columns with the same head are one. */
function isBest(one: Column, found: readonly Column[], heads: readonly string[]): boolean {
  const best = found.find(({ field }) => field === one.field) ?? one
  if (plainHead(heads[one.at]) === plainHead(heads[best.at])) return true
  if (best.rank >= USUAL || best.rank === one.rank)
    throw twoColumns(one.field, [heads[best.at] ?? "", heads[one.at] ?? ""])
  return false
}

const usualNames = ({ fields }: FileColumns) =>
  new Map(
    Object.entries(fields).flatMap(([field, names]) =>
      [plainHead(field), ...names].map((name, at) => [name, { field, rank: USUAL + at }]),
    ),
  )

const isField = (name: string, { fields, more }: FileColumns) =>
  Object.hasOwn(fields, name) || more?.test(name) === true

/** The head of a column without case, accents, spaces, hyphens and underscores. */
const plainHead = (head = "") =>
  head
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\s_\p{M}-]/gu, "")

const MOST_UNREAD = 1000

function addUnread(heads: string[], columns: Column[], { mapped, unread }: FileColumns): void {
  const read = new Set(columns.map(({ at }) => at))
  for (const [at, head] of heads.entries()) {
    if (read.has(at) || head.trim() === "" || mapped?.has(plainHead(head))) continue
    if (unread && unread.size < MOST_UNREAD) unread.add(head.trim())
  }
}

function twoColumns(field: string, heads: string[]): Failure {
  const [one, other] = heads.map((head) => JSON.stringify(head.trim()))
  const text = `FILE: the columns ${one} and ${other} both hold the ${field}.`
  const hint = `choose one with --map COLUMN=${field}, or leave one out with --map COLUMN=`
  return new Failure(exits.invalid, "two_columns", text, { hint })
}

function noColumn(what: string, heads: string[], { keys }: FileColumns): Failure {
  const text = `FILE: no column ${what}: ${heads.slice(0, 20).join(", ").slice(0, 1000)}`
  const hint = `name it with --map COLUMN=${keys[0]}; the first line of the file names the columns`
  return new Failure(exits.invalid, "missing_column", text, { hint })
}

/**
 * `E-Mail=email` and `Plan=metadata.plan`; a column that is mapped to nothing is left out. One column may fill several
 * fields. The other order is understood where only one side is a field.
 */
export function mappingOf(given: readonly string[], known: FileColumns): Map<string, string[]> {
  const mapped = new Map<string, string[]>()
  for (const text of given) {
    const at = text.lastIndexOf("=")
    if (at < 1) throw usage(`--map "${text}" is not COLUMN=FIELD`)
    const [left, right] = [text.slice(0, at), text.slice(at + 1)]
    const is_turned = right !== "" && !isField(right, known) && isField(left, known)
    const [column, field] = is_turned ? [right, left] : [left, right]
    if (field !== "" && !isField(field, known))
      throw usage(
        `--map "${text}": there is no field ${field}`,
        `fields: ${Object.keys(known.fields).join(", ")}, metadata.NAME`,
      )
    const fields = mapped.get(plainHead(column)) ?? []
    mapped.set(plainHead(column), field === "" ? fields : [...fields, field])
  }
  return mapped
}
