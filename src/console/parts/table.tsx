import type { ComponentChildren } from "preact"
import { REACHABLE } from "./code-block"

interface TableProps {
  /** What the table is about, for screen readers. */
  caption: string
  columns: readonly string[]
  rows: readonly { id: string; cells: readonly ComponentChildren[] }[]
  /** On a phone the cells of a row stand one below the other, for cells of many words. */
  is_stacked?: boolean
}

/** A table that scrolls inside its own box where it is too wide. */
export const Table = ({ caption, columns, rows, is_stacked = false }: TableProps) => (
  <section class="scroll" aria-label={caption} {...REACHABLE}>
    <table class={is_stacked ? "stacked" : undefined}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column} scope="col">
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ id, cells }) => (
          <tr key={id}>
            {cells.map((cell, at) => (
              <td key={columns[at]}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
)
