import type { Components } from "../../src/client/components"
import { fitted, number, rightAligned, widthOf } from "./cells"
import type { IdKindName } from "./id-kinds"
import { isObject } from "./input"
import { cleanLine, type Paint } from "./terminal"
import { age } from "./time"

type Flexible = boolean | "first" | "last"

const ORDER: readonly Flexible[] = ["first", true, "last"]

interface Column<Row> {
  title: string
  cell: (row: Row) => string
  /** Shrinks when the terminal is narrow: those of "first" before others, those of "last" after. */
  flexible?: Flexible
  /** Shows ids by their endings, which commands then take. */
  ids?: { kind: IdKindName; of: (row: Row) => string | null }
  /** Left out where the terminal has no room for all: the higher, the sooner. */
  spare?: number
  /** At the right edge, for numbers. */
  right?: true
  /** Cells that a list which stands on the screen keeps for it, so that its columns do not move. */
  least?: number
  paint?: (text: string, row: Row, paint: Paint) => string
}

/** What a column shows: a field, or what a function makes of the row. */
type ColumnSpec<Row> =
  | (keyof Row & string)
  | ((row: Row) => unknown)
  | (Omit<Column<Row>, "title" | "cell"> & { cell: (row: Row) => string })

/** Columns by their titles, from left to right. */
export type Columns<Row> = Readonly<Record<string, ColumnSpec<Row>>>

const textOf = (value: unknown): string => String(value ?? "")

export const columnsOf = <Row>(columns: Columns<Row>): Column<Row>[] =>
  Object.entries(columns).map(([title, spec]) => {
    if (typeof spec === "object") return { title, ...spec }
    const cell = typeof spec === "function" ? spec : (row: Row) => row[spec]
    return { title, cell: (row) => textOf(cell(row)) }
  })

/** A column that shrinks when the terminal is narrow. */
export const wide = <Row>(
  cell: (row: Row) => unknown,
  flexible: Flexible = true,
): Omit<Column<Row>, "title"> => ({ cell: (row) => textOf(cell(row)), flexible })

/** How long ago a time was; `never` for none, where that is said. */
export const ago =
  <Row>(at: (row: Row) => unknown, never = "") =>
  (row: Row): string =>
    age(at(row)) || never

export const count = <Row>(of: (row: Row) => number | null | undefined, spare?: number) => ({
  cell: (row: Row) => {
    const value = of(row)
    return value === null || value === undefined ? "" : number(value)
  },
  right: true as const,
  ...(spare !== undefined && { spare }),
})

/** A word in its own colour; `other` is that of the words that are not named. */
export const coloured = <Row>(
  of: (row: Row) => string,
  colours: Readonly<Partial<Record<string, keyof Paint>>>,
  other: keyof Paint,
) => ({
  cell: of,
  paint: (text: string, row: Row, paint: Paint) => paint[colours[of(row)] ?? other](text),
})

const GAP = "  "
const LEAST_WIDTH = 8

/** Cut to less, a flexible column tells little: spare ones go before. */
const FAIR_WIDTH = 14

/** What an address should have before a spare column has anything. */
const ADDRESS_WIDTH = 46

/** Columns as wide as their content; spare and flexible ones give way when the terminal is narrow. */
export const table = <Row>(
  rows: readonly Row[],
  columns: Columns<Row>,
  width: number,
  paint: Paint,
): string =>
  tableLines(rows, columns, width, paint)
    .map((line) => line.trimEnd())
    .join("\n")

/**
 * A head, and a line for each row. A list that `stands` on the screen has lines of exactly `width` cells: there
 * its flexible columns share what the others leave, whatever is in them, and ids give way first.
 */
export function tableLines<Row>(
  rows: readonly Row[],
  all: Columns<Row>,
  width: number,
  paint: Paint,
  stands = false,
): string[] {
  const columns = affordable(
    columnsOf(all).map((column) => written(column, rows, stands)),
    width,
  )
  const widths = stands ? shared(columns, width) : fit(columns, width)
  const aligned = ({ right }: Column<Row>, text: string, at: number) =>
    right ? rightAligned(text, widths[at] ?? 0) : fitted(text, widths[at] ?? 0)
  const line = (cells: string[]) => (stands ? fitted(cells.join(GAP), width) : cells.join(GAP))
  const head = columns.map((column, at) => paint.dim(aligned(column, column.title, at)))
  const body = rows.map((row, index) =>
    columns.map((column, at) => {
      const text = aligned(column, column.cells[index] ?? "", at)
      return column.paint ? column.paint(text, row, paint) : text
    }),
  )
  return [head, ...body].map(line)
}

interface Written<Row> extends Column<Row> {
  cells: string[]
  size: number
}

/** Ids are copied by a key where a list stands on the screen. */
const SPARE_ID = 9

function written<Row>(column: Column<Row>, rows: readonly Row[], stands: boolean): Written<Row> {
  const cells = rows.map((row) => cleanLine(column.cell(row)))
  if (stands && column.flexible) return { ...column, cells, size: FAIR_WIDTH }
  const least = stands ? (column.least ?? 0) : 0
  const size = Math.max(least, column.title.length, ...cells.map(widthOf))
  return { ...column, cells, size, ...(stands && column.ids && { spare: SPARE_ID }) }
}

function affordable<Row>(columns: Written<Row>[], width: number): Written<Row>[] {
  const least = columns.map(({ flexible, size }) => {
    if (!flexible) return size
    return Math.min(size, flexible === "last" ? ADDRESS_WIDTH : FAIR_WIDTH)
  })
  const sparest = Math.max(0, ...columns.map(({ spare }) => spare ?? 0))
  if (sparest === 0 || together(least) <= width) return columns
  return affordable(
    columns.filter(({ spare }) => spare !== sparest),
    width,
  )
}

const together = (widths: readonly number[]): number =>
  widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length)

/** What the others leave is shared by the flexible ones. */
function shared(columns: readonly { flexible?: Flexible; size: number }[], width: number) {
  let open = columns.filter(({ flexible }) => flexible).length
  let left = width - together(columns.map(({ flexible, size }) => (flexible ? 0 : size)))
  return columns.map(({ flexible, size }) => {
    if (!flexible) return size
    const part = Math.max(0, Math.ceil(left / open))
    left -= part
    open -= 1
    return part
  })
}

function fit(columns: readonly { flexible?: Flexible; size: number }[], width: number) {
  const widths = columns.map(({ size }) => size)
  while (together(widths) > width) {
    const widest = ORDER.map((flexible) => widestOf(columns, widths, flexible)).find(
      (at) => at >= 0,
    )
    if (widest === undefined) return widths
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

/** Which column gives way next; -1 where none can. */
function widestOf(
  columns: readonly { flexible?: Flexible }[],
  widths: readonly number[],
  flexible: Flexible,
): number {
  let widest = -1
  for (const [index, column] of columns.entries()) {
    const size = widths[index] ?? 0
    if (column.flexible === flexible && size > LEAST_WIDTH && size > (widths[widest] ?? 0))
      widest = index
  }
  return widest
}

const SHOWN_CHARACTERS = 8

/** The end of an id, which is random: its beginning is the time, and the same in its neighbours. */
export const shortId = (id: string): string => id.slice(-SHOWN_CHARACTERS)

/** Lines that come one after the other show all ids whole, or all of them by their ends. */
const ROOM_FOR_IDS = 100

export const lineId = (id: string, { width }: { width: number }): string =>
  width < ROOM_FOR_IDS ? shortId(id) : id

/** The column of the ids of a kind. */
export const idColumn = <Row extends object>(
  kind: IdKindName,
  of = (row: Row): string | null => ("id" in row ? String(row.id) : null),
): Omit<Column<Row>, "title"> => ({ cell: (row) => shortId(of(row) ?? ""), ids: { kind, of } })

/** A name, its value, and the colour of it. */
export type Field = readonly [string, unknown, ((text: string) => string)?]

/** Names on the left, values on the right; empty values are left out. */
export function fields(pairs: readonly Field[], paint: Paint): string {
  const shown = pairs
    .map(([name, value, brush]) => [name, fieldText(value), brush] as const)
    .filter(([, text]) => text !== "")
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown
    .map(([name, text, brush = String]) => {
      return `${paint.dim(fitted(name, width))}  ${brush(cleanLine(text))}`
    })
    .join("\n")
}

/**
 * All fields of a record for people: names without underscores, an address as one value, what an object holds as
 * fields of their own, and of a list of records their number. `values` stand in the place of the record's; null leaves
 * one out.
 */
export const recordText = (record: object, paint: Paint, values: object = {}): string =>
  fields(Object.entries({ ...record, ...values }).flatMap(fieldsIn), paint)

function fieldsIn([name, value]: readonly [string, unknown]): Field[] {
  const label = name.replaceAll("_", " ")
  if (Array.isArray(value) && value.some(isObject))
    return [[label, `${value.length} (--json shows them)`]]
  if (!isObject(value) || name === "metadata") return [[label, value]]
  if ("email" in value && "name" in value) return [[label, address(value as NamedAddress)]]
  return Object.entries(value).flatMap(([key, one]) => fieldsIn([`${label} ${key}`, one]))
}

type NamedAddress = Components["NamedAddress"]

/** `Ann <a@b.c>` of either form in which an address may arrive. */
export function address(value: NamedAddress | string | null | undefined): string {
  if (value === null || value === undefined) return ""
  if (typeof value === "string") return value
  return value.name ? `${value.name} <${value.email}>` : value.email
}

/** A list of plain values with commas, and anything deeper as JSON; "" for what is empty. */
function fieldText(value: unknown): string {
  if (value === null || value === undefined) return ""
  if (typeof value !== "object") return String(value)
  if (Object.keys(value).length === 0) return ""
  const is_plain = Array.isArray(value) && value.every((one) => typeof one !== "object")
  return is_plain ? value.join(", ") : JSON.stringify(value)
}
