import { fitted } from "../lib/cells"
import { type Columns, tableLines } from "../lib/table"
import { cleanLine } from "../lib/terminal"
import { rowsOf } from "./lists"
import type { DrawList, ListName, Rows, State } from "./state"

/** What marks the chosen row also without colour. */
const MARK = "▸"

/** Draws a list with the columns of the CLI: a head and the rows that are seen; only these are looked at. */
export const drawList =
  <Name extends ListName>(name: Name, columnsOf: (state: State) => Columns<Rows[Name]>): DrawList =>
  (state, { width, height, has_focus }, paint) => {
    const { selected, top } = state.lists[name].position
    const rows = rowsOf(state, name).slice(top, top + height - 1)
    const [head = "", ...lines] = tableLines(rows, columnsOf(state), width - 2, paint, true)
    const marked = lines.map((line, at) => {
      if (rows[at]?.id !== selected) return `  ${line}`
      const text = `${MARK} ${Bun.stripANSI(line)}`
      return has_focus ? paint.inverse(text) : paint.bold(text)
    })
    return filled([`  ${head}`, ...marked], width, height)
  }

/** As many lines as there is room for. */
export function filled(lines: readonly string[], width: number, height: number): string[] {
  const blank = " ".repeat(width)
  return Array.from({ length: height }, (_, at) => lines[at] ?? blank)
}

/** One sentence below the head of an empty table. */
export const told = (head: string, text: string, width: number, height: number): string[] =>
  filled([head, fitted(`  ${cleanLine(text)}`, width)], width, height)
