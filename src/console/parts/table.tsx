import type { ComponentChildren } from "preact"
import { REACHABLE } from "./reachable"

interface TableProps {
  /** What the table is about, for screen readers. */
  caption: string
  columns: readonly string[]
  rows: readonly { id: string; cells: readonly ComponentChildren[] }[]
}

/** A table that scrolls inside its own box where it is too wide. */
export const Table = ({ caption, columns, rows }: TableProps) => (
  <section class="scroll" aria-label={caption} {...REACHABLE}>
    <table>
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
