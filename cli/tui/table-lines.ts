import { isBad, isGood } from "../lib/message-status"
import { cleanLine, type Paint } from "../lib/terminal"
import { fitted, rightAligned } from "./cells"

export type Brush = keyof Paint

export interface MonitorColumn<Row> {
  title: string
  /** Cells; those with a `share` divide among them what the others leave. */
  width: number
  share?: number
  right?: boolean
  /** Only where the table has this many cells. */
  from?: number
  cell(row: Row, now: number): string
  brush?(row: Row): Brush | undefined
}

const GAP = "  "

/** What marks the chosen row also without colour. */
const MARK = "▸"

interface TableView<Row> {
  columns: readonly MonitorColumn<Row>[]
  rows: readonly Row[]
  width: number
  /** Of all of it, with its head. */
  height: number
  top: number
  selected: string | null
  now: number
  paint: Paint
  /** Whether keys go to this table. */
  has_focus?: boolean
}

/** A head and the rows from `top` on, each line exactly `width` cells; only these are looked at. */
export function tableLines<Row extends { id: string }>(table: TableView<Row>): string[] {
  const { rows, width, height, top, paint } = table
  const columns = table.columns.filter(({ from = 0 }) => width >= from)
  const widths = widthsOf(columns, width - 2)
  const titles = columns.map((column, index) => aligned(column, column.title, widths[index] ?? 0))
  const head = paint.dim(fitted(`  ${titles.join(GAP)}`, width))
  const seen = rows.slice(top, top + height - 1)
  const lines = seen.map((row) => rowLine(table, row, columns, widths))
  const blank = Array.from({ length: height - 1 - seen.length }, () => " ".repeat(width))
  return [head, ...lines, ...blank]
}

function rowLine<Row extends { id: string }>(
  { now, paint, selected, width, has_focus = true }: TableView<Row>,
  row: Row,
  columns: readonly MonitorColumn<Row>[],
  widths: readonly number[],
): string {
  const is_chosen = row.id === selected
  const cells = columns.map((column, index) => {
    const text = aligned(column, cleanLine(column.cell(row, now)), widths[index] ?? 0)
    const brush = is_chosen ? undefined : column.brush?.(row)
    return brush ? paint[brush](text) : text
  })
  if (!is_chosen) return `  ${cells.join(GAP)}${" ".repeat(Math.max(0, slack(widths, width)))}`
  const line = fitted(`${MARK} ${cells.join(GAP)}`, width)
  return has_focus ? paint.inverse(line) : paint.bold(line)
}

const slack = (widths: readonly number[], width: number) =>
  width - 2 - widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length)

const aligned = <Row>({ right }: MonitorColumn<Row>, text: string, width: number) =>
  right ? rightAligned(text, width) : fitted(text, width)

function widthsOf<Row>(columns: readonly MonitorColumn<Row>[], width: number): number[] {
  const fixed = columns.reduce(
    (sum, { width: own, share }) => sum + (share === undefined ? own : 0) + GAP.length,
    -GAP.length,
  )
  const shares = columns.reduce((sum, { share = 0 }) => sum + share, 0)
  let left = Math.max(0, width - fixed)
  let open = shares
  return columns.map(({ width: own, share }) => {
    if (share === undefined) return own
    const part = Math.round((left * share) / open)
    left -= part
    open -= share
    return part
  })
}

/** A line of text and its colour, before it is broken to a width. */
export interface StyledLine {
  text: string
  brush?: Brush
}

export const styled = (text: string, brush?: Brush): StyledLine =>
  brush ? { text, brush } : { text }

/** `name   value`, with the value left out where there is none. */
export function pair(name: string, value: string | number | null | undefined): StyledLine[] {
  if (value === null || value === undefined || value === "") return []
  return [styled(`${name.padEnd(11)}${cleanLine(String(value))}`)]
}

/** Colour never says more than the word and its mark. */
export const statusBrush = (status: string): Brush =>
  isGood(status) ? "green" : isBad(status) ? "red" : "yellow"

export const statusWord = (status: string): string => (isBad(status) ? `${status} ✗` : status)

const brushes: Partial<Record<string, Brush>> = {
  success: "green",
  exhausted: "red",
  failed: "red",
  held: "cyan",
}

export const deliveryBrush = (status: string): Brush => brushes[status] ?? "yellow"

export const deliveryWord = (status: string): string =>
  status === "failed" || status === "exhausted" ? `${status} ✗` : status
