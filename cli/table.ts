import { cleanLine, type Paint } from "./terminal"

export interface Column<Row> {
  title: string
  cell: (row: Row) => string
  /** Shrinks first when the terminal is narrow. */
  flexible?: boolean
  paint?: (text: string, row: Row, paint: Paint) => string
}

const GAP = "  "
const LEAST_WIDTH = 8

/** Columns as wide as their content; flexible ones give way when the terminal is narrow. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number,
  paint: Paint,
): string {
  const cells = rows.map((row) => columns.map((column) => cleanLine(column.cell(row))))
  const widths = fit(
    columns.map(({ title }, index) =>
      Math.max(title.length, ...cells.map((line) => Bun.stringWidth(line[index] ?? ""))),
    ),
    columns,
    width,
  )
  const head = columns.map(({ title }, index) => paint.dim(padded(title, widths[index] ?? 0)))
  const body = rows.map((row, line) =>
    columns.map((column, index) => {
      const text = padded(cells[line]?.[index] ?? "", widths[index] ?? 0)
      return column.paint ? column.paint(text, row, paint) : text
    }),
  )
  return [head, ...body].map((line) => line.join(GAP).trimEnd()).join("\n")
}

function fit(wanted: number[], columns: readonly { flexible?: boolean }[], width: number) {
  const widths = [...wanted]
  const total = () => widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length)
  while (total() > width) {
    let widest = -1
    for (const [index, column] of columns.entries()) {
      const size = widths[index] ?? 0
      if (column.flexible && size > LEAST_WIDTH && size > (widths[widest] ?? 0)) widest = index
    }
    if (widest < 0) return widths
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
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

/** Names on the left, values on the right; empty values are left out. */
export function fields(pairs: readonly (readonly [string, unknown])[], paint: Paint): string {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown
    .map(([name, value]) => `${paint.dim(name.padEnd(width))}  ${cleanLine(String(value))}`)
    .join("\n")
}
