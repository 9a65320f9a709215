import { type CsvRecord, plainCell, recordsIn } from "./csv"
import { exits, Failure, usage } from "./errors"

/** Which field each column of a CSV file fills. */
export interface CsvColumns {
  /** The field that names a line. */
  key: string
  /** The fields, each with the usual names of its column beside its own; see `plainHead`. */
  fields: Readonly<Record<string, readonly string[]>>
  /** Names of more fields, such as `metadata.plan`. */
  more?: RegExp
  /** Fields by the head of their column, as --map gives them. */
  mapped?: ReadonlyMap<string, string>
  /** A file may have no head. The first cell of each line is the key then. */
  headless?: boolean
  /** Gets the heads of columns that fill no field, and that --map does not leave out. */
  unread?: Set<string>
}

/** One line below the head: the cells that are not empty, by their fields. */
export interface CsvFields extends CsvRecord {
  values: Map<string, string>
  /** Of the head; 0 where there is none. */
  columns: number
}

/**
 * The lines of a CSV text with the fields that their cells fill. Throws exit 7 where two columns fill one field, and
 * where none holds the key.
 */
export async function* fieldsIn(
  pieces: AsyncIterable<string>,
  known: CsvColumns,
): AsyncGenerator<CsvFields> {
  let fields: string[] | undefined
  for await (const record of recordsIn(pieces)) {
    const is_head = fields === undefined
    fields ??= fieldsOf(record.cells, known)
    const has_head = fields.includes(known.key)
    if (is_head && has_head) addUnread(record.cells, fields, known)
    else if (has_head) yield withFields(record, fields)
    else if (known.headless) yield { ...withFields(record, [known.key]), columns: 0 }
    else throw noKey(record.cells, known.key)
  }
}

function withFields(record: CsvRecord, fields: string[]): CsvFields {
  const values = new Map<string, string>()
  for (const [at, field] of fields.entries()) {
    const cell = plainCell(record.cells[at] ?? "").trim()
    if (field !== "" && cell !== "") values.set(field, cell)
  }
  return { ...record, values, columns: fields.length }
}

/**
 * The field that each column fills; "" where it fills none. A column that --map names comes before one with the
 * name of the field, and that one before one with a usual name.
 */
function fieldsOf(heads: readonly string[], known: CsvColumns): string[] {
  const usual = new Map(
    Object.entries(known.fields).flatMap(([field, names]) =>
      [plainHead(field), ...names].map((name) => [name, field] as const),
    ),
  )
  const guessed = heads.map((head, at) => {
    const [plain, name] = [plainHead(head), head.trim()]
    const mapped = known.mapped?.get(plain)
    if (mapped !== undefined) return { at, field: mapped, rank: 0 }
    if (isField(name, known)) return { at, field: name, rank: 1 }
    return { at, field: usual.get(plain) ?? "", rank: 2 }
  })
  const fields = heads.map(() => "")
  const filled = new Map<string, { at: number; rank: number }>()
  for (const { at, field, rank } of guessed.toSorted((one, other) => one.rank - other.rank)) {
    const other = filled.get(field)
    if (field === "" || (other && other.rank < rank)) continue
    if (other) throw twoColumns(field, [heads[other.at] ?? "", heads[at] ?? ""], known)
    filled.set(field, { at, rank })
    fields[at] = field
  }
  return fields
}

const isField = (name: string, { fields, more }: CsvColumns) =>
  Object.hasOwn(fields, name) || more?.test(name) === true

/** The head of a column without case, spaces, hyphens and underscores. */
const plainHead = (head: string) => head.toLowerCase().replaceAll(/[\s_-]/g, "")

function addUnread(heads: string[], fields: string[], { mapped, unread }: CsvColumns): void {
  for (const [at, head] of heads.entries())
    if (fields[at] === "" && head.trim() !== "" && !mapped?.has(plainHead(head)))
      unread?.add(head.trim())
}

function twoColumns(field: string, heads: string[], { mapped }: CsvColumns): Failure {
  const [one, other] = heads.map((head) => JSON.stringify(head.trim()))
  const text = `FILE: the columns ${one} and ${other} both hold the ${field}.`
  const hint = mapped
    ? `choose one with --map COLUMN=${field}, or leave one out with --map COLUMN=`
    : "leave one of them out"
  return new Failure(exits.invalid, "two_columns", text, { hint })
}

function noKey(heads: string[], key: string): Failure {
  const columns = heads.slice(0, 20).join(", ")
  const text = `FILE: no column holds the ${key.replaceAll("_", " ")}: ${columns}`
  const hint = `name it with --map COLUMN=${key}; the first line of the file names the columns`
  return new Failure(exits.invalid, "missing_column", text, { hint })
}

/** `E-Mail=email` and `Plan=metadata.plan`; a column that is mapped to nothing is left out. */
export function mappingOf(given: readonly string[], known: CsvColumns): Map<string, string> {
  return new Map(
    given.map((text) => {
      const at = text.lastIndexOf("=")
      const field = text.slice(at + 1)
      if (at < 1) throw usage(`--map "${text}" is not COLUMN=FIELD`)
      if (field !== "" && !isField(field, known))
        throw usage(
          `--map "${text}": there is no field ${field}`,
          `fields: ${Object.keys(known.fields).join(", ")}, metadata.NAME`,
        )
      return [plainHead(text.slice(0, at)), field]
    }),
  )
}
