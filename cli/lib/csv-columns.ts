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
  /** Several columns may fill one field: of each line the first cell that is filled, in the order of their names. */
  together?: boolean
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
  let heads: string[] | undefined
  let columns: Column[] = []
  for await (const record of recordsIn(pieces)) {
    const is_head = heads === undefined
    heads ??= record.cells
    if (is_head) columns = columnsOf(heads, known)
    const has_head = columns.some(({ field }) => field === known.key)
    if (is_head && has_head) addUnread(heads, columns, known)
    else if (has_head) yield { ...record, values: valuesOf(record, columns), columns: heads.length }
    else if (known.headless)
      yield { ...record, values: valuesOf(record, [{ at: 0, field: known.key }]), columns: 0 }
    else throw noKey(record.cells, known.key)
  }
}

/** A column that fills a field. */
interface Column {
  at: number
  field: string
}

function valuesOf({ cells }: CsvRecord, columns: readonly Column[]): Map<string, string> {
  const values = new Map<string, string>()
  for (const { at, field } of columns) {
    const cell = plainCell(cells[at] ?? "").trim()
    if (cell !== "" && !values.has(field)) values.set(field, cell)
  }
  return values
}

/** From here on a column has one of the usual names of its field. */
const USUAL = 2

/**
 * The columns that fill a field. First comes a column that --map names, then a column with the name of the field.
 * Columns with a usual name follow, in the order of the usual names.
 */
function columnsOf(heads: readonly string[], known: CsvColumns): Column[] {
  const usual = new Map(
    Object.entries(known.fields).flatMap(([field, names]) =>
      [plainHead(field), ...names].map((name, rank) => [name, { field, rank: USUAL + rank }]),
    ),
  )
  const guessed = heads.map((head, at) => {
    const [plain, name] = [plainHead(head), head.trim()]
    const mapped = known.mapped?.get(plain)
    if (mapped !== undefined) return { at, field: mapped, rank: 0 }
    if (isField(name, known)) return { at, field: name, rank: 1 }
    return { at, ...(usual.get(plain) ?? { field: "", rank: USUAL }) }
  })
  const found = guessed
    .filter(({ field }) => field !== "")
    .toSorted((one, other) => one.rank - other.rank)
  if (known.together) return found
  const filled = new Map<string, (typeof found)[number]>()
  for (const column of found) {
    const { field, rank } = column
    const other = filled.get(field)
    if (!other) filled.set(field, column)
    else if (other.rank >= Math.min(rank, USUAL)) {
      const both = heads.filter((_, at) => at === other.at || at === column.at)
      throw twoColumns(field, both)
    }
  }
  return [...filled.values()]
}

const isField = (name: string, { fields, more }: CsvColumns) =>
  Object.hasOwn(fields, name) || more?.test(name) === true

/** The head of a column without case, spaces, hyphens and underscores. */
const plainHead = (head: string) => head.toLowerCase().replaceAll(/[\s_-]/g, "")

function addUnread(heads: string[], columns: Column[], { mapped, unread }: CsvColumns): void {
  const read = new Set(columns.map(({ at }) => at))
  for (const [at, head] of heads.entries())
    if (!read.has(at) && head.trim() !== "" && !mapped?.has(plainHead(head)))
      unread?.add(head.trim())
}

function twoColumns(field: string, heads: string[]): Failure {
  const [one, other] = heads.map((head) => JSON.stringify(head.trim()))
  const text = `FILE: the columns ${one} and ${other} both hold the ${field}.`
  const hint = `choose one with --map COLUMN=${field}, or leave one out with --map COLUMN=`
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
