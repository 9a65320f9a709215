import type { IdKindName } from "./id-kinds"
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

const GAP = "  "
const LEAST_WIDTH = 8

/** Cut to less, a flexible column tells little: spare ones go before. */
const FAIR_WIDTH = 14

/** What an address should have before a spare column has anything. */
const ADDRESS_WIDTH = 46

/** Columns as wide as their content; spare and flexible ones give way when the terminal is narrow. */
export function table<Row>(
  rows: readonly Row[],
  all: Columns<Row>,
  width: number,
  paint: Paint,
): string {
  const columns = affordable(
    columnsOf(all).map((column) => written(column, rows)),
    width,
  )
  const widths = fit(columns, width)
  const line = (cells: string[]) => cells.join(GAP).trimEnd()
  const head = columns.map(({ title }, index) => paint.dim(padded(title, widths[index] ?? 0)))
  const body = rows.map((row, at) =>
    columns.map((column, index) => {
      const text = padded(column.cells[at] ?? "", widths[index] ?? 0)
      return column.paint ? column.paint(text, row, paint) : text
    }),
  )
  return [head, ...body].map(line).join("\n")
}

interface Written<Row> extends Column<Row> {
  cells: string[]
  size: number
}

function written<Row>(column: Column<Row>, rows: readonly Row[]): Written<Row> {
  const cells = rows.map((row) => cleanLine(column.cell(row)))
  const size = Math.max(column.title.length, ...cells.map((text) => Bun.stringWidth(text)))
  return { ...column, cells, size }
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

function padded(text: string, width: number): string {
  const short = shortened(text, width)
  return short + " ".repeat(Math.max(0, width - Bun.stringWidth(short)))
}

/** Cut to a width in terminal cells, with an ellipsis where something is missing. */
export function shortened(text: string, width: number): string {
  if (Bun.stringWidth(text) <= width) return text
  let short = ""
  for (const character of text) {
    if (Bun.stringWidth(short + character) > width - 1) break
    short += character
  }
  return `${short}…`
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

/** Names on the left, values on the right; empty values are left out. */
export function fields(pairs: readonly (readonly [string, unknown])[], paint: Paint): string {
  const shown = pairs
    .map(([name, value]) => [name, fieldText(value)] as const)
    .filter(([, text]) => text !== "")
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown
    .map(([name, text]) => `${paint.dim(name.padEnd(width))}  ${cleanLine(text)}`)
    .join("\n")
}

/** A list of plain values with commas, and anything deeper as JSON; "" for what is empty. */
function fieldText(value: unknown): string {
  if (value === null || value === undefined) return ""
  if (typeof value !== "object") return String(value)
  if (Object.keys(value).length === 0) return ""
  const is_plain = Array.isArray(value) && value.every((one) => typeof one !== "object")
  return is_plain ? value.join(", ") : JSON.stringify(value)
}
