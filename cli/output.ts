import { type Column, table } from "./table"
import type { Paint, Terminal } from "./terminal"

/** `human` on a terminal; `json` in a pipe; `ndjson` one object a line; `quiet` ids only. */
export type Form = "human" | "json" | "ndjson" | "quiet"

type Json = Record<string, unknown>

export interface Output {
  readonly form: Form
  readonly paint: Paint
  /** One resource, as the API gave it, or for people. */
  record(record: Json, human: () => string): Promise<void>
  /** Several of a kind. */
  list<Row extends Json>(rows: readonly Row[], columns: readonly Column<Row>[]): Promise<void>
  /** One member of a stream: always one line. */
  line(record: Json, human: () => string): Promise<void>
  /** Bytes or text as they are. */
  raw(content: string | Uint8Array): Promise<void>
  /** For people only: off a terminal it says nothing. */
  note(text: string): Promise<void>
  /** One next step, shown under a result on a terminal. */
  next(command: string): Promise<void>
}

interface Wanted {
  form: Form
  fields: string[] | undefined
  terminal: Terminal
  paint: Paint
}

export function openOutput({ form, fields, terminal, paint }: Wanted): Output {
  const shaped = (record: Json) => (fields ? pick(record, fields) : record)
  const print = (text: string) => write(process.stdout, `${text}\n`)
  const compact = (record: Json) => JSON.stringify(shaped(record))
  const pretty = (value: unknown) => JSON.stringify(value, null, terminal.out ? 2 : undefined)

  return {
    form,
    paint,
    async record(record, human) {
      if (form === "human") await print(human())
      else if (form === "quiet") await print(idOf(record))
      else await print(form === "ndjson" ? compact(record) : pretty(shaped(record)))
    },
    async list(rows, columns) {
      if (form === "human") await print(table(rows, columns, terminal.width, paint))
      else if (form === "json") await print(pretty(rows.map(shaped)))
      else for (const row of rows) await print(form === "quiet" ? idOf(row) : compact(row))
    },
    async line(record, human) {
      if (form === "human") await print(human())
      else await print(form === "quiet" ? idOf(record) : compact(record))
    },
    raw: (content) => write(process.stdout, content),
    async note(text) {
      if (terminal.err && form !== "quiet") await write(process.stderr, `${text}\n`)
    },
    async next(command) {
      if (form === "human" && terminal.out) await print(paint.dim(`→ ${command}`))
    },
  }
}

const idOf = (record: Json) => String(record.id ?? record.name ?? "")

/** Dotted paths reach inside; a field that is not there becomes null. */
export function pick(record: Json, fields: readonly string[]): Json {
  const at = (path: string) => {
    let value: unknown = record
    for (const part of path.split(".")) {
      value = typeof value === "object" && value !== null ? (value as Json)[part] : undefined
    }
    return value ?? null
  }
  return Object.fromEntries(fields.map((path) => [path, at(path)]))
}

/** Resolves when the stream has taken it all, so that exiting afterwards loses nothing. */
export function write(stream: NodeJS.WriteStream, content: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    // A reader that went away (`| head`) is no error of ours.
    stream.write(content, () => resolve())
  })
}
