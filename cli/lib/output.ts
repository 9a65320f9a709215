import { exits, Failure, usage } from "./errors"
import type { IdKindName } from "./id-kinds"
import { type Columns, columnsOf, table } from "./table"
import type { Paint, Terminal } from "./terminal"

/** `human` on a terminal; `json` in a pipe; `ndjson` one object a line; `quiet` ids only. */
export type Form = "human" | "json" | "ndjson" | "quiet"

type Json = Record<string, unknown>

export interface Output {
  readonly form: Form
  readonly paint: Paint
  /** One resource, as the API gave it, or for people. `brief` is what --quiet prints for the id. */
  record(record: Json, human: () => string, brief?: string | null): Promise<void>
  /** Several of a kind. */
  list<Row extends Json>(rows: readonly Row[], columns: Columns<Row>): Promise<void>
  /** One member of a stream: always one line. */
  line(record: Json, human: () => string): Promise<void>
  /** The same for members that are all there, where nobody reads them as text. */
  lines(records: readonly Json[]): Promise<void>
  /** Bytes or text as they are. */
  raw(content: string | Uint8Array): Promise<void>
  /** For people only: off a terminal it says nothing. */
  note(text: string): Promise<void>
  /** What is true for a moment: the next replaces it, and "" takes it away. On terminals only. */
  passing(text: string): void
  /** One next step, shown under a result on a terminal. */
  next(command: string): Promise<void>
  /** A command for people to type, meant for the same server as this one. */
  again(command: string): string
  /**
   * Before something is changed: throws with exit 2 when --json names a field that the result does
   * not have. Afterwards it would be too late to fail.
   */
  promises(fields: readonly string[]): void
}

interface OutputParts {
  form: Form
  fields: string[] | undefined
  terminal: Terminal
  paint: Paint
  /** Hears which ids a table showed by their endings. */
  onTable: (kind: IdKindName, ids: readonly (string | null)[]) => void
  /** The flags that lead to the same server: ` --profile prod`. */
  same_server: string
}

export function openOutput(parts: OutputParts): Output {
  const { form, fields, terminal, paint, same_server, onTable } = parts
  let is_checked = fields === undefined
  const shaped = (record: Json) => (fields ? pick(record, fields) : record)
  const print = (text: string) => write(process.stdout, `${text}\n`)
  const compact = (record: Json) => JSON.stringify(shaped(record))
  const pretty = (value: unknown) => JSON.stringify(value, null, terminal.out ? 2 : undefined)
  const printId = async (id: string) => {
    if (id !== "") await print(id)
  }
  const check = (records: readonly Json[]) => {
    if (!is_checked && fields) requireFields(records, fields)
  }
  const warnOnce = async (record: Json) => {
    const unknown = is_checked ? [] : unknownFields([record], fields ?? [])
    is_checked = true
    const names = unknown.map((name) => `"${name}"`).join(", ")
    if (names) await write(process.stderr, `--json: the first line has no field ${names}\n`)
  }

  return {
    form,
    paint,
    async record(record, human, brief) {
      if (form === "human") return await print(human())
      if (form === "quiet") return await printId(brief ?? idOf(record))
      check([record])
      await print(form === "ndjson" ? compact(record) : pretty(shaped(record)))
    },
    async list(rows, columns) {
      if (form === "human") {
        const text = table(rows, columns, terminal.width, paint)
        for (const { ids } of columnsOf(columns)) {
          if (ids) onTable(ids.kind, rows.map(ids.of))
        }
        return await print(rows.length === 0 ? paint.dim("none") : text)
      }
      if (form !== "quiet") check(rows)
      if (form === "json") await print(pretty(rows.map(shaped)))
      else
        for (const row of rows) await (form === "quiet" ? printId(idOf(row)) : print(compact(row)))
    },
    async line(record, human) {
      if (form === "human") return await print(human())
      if (form === "quiet") return await printId(idOf(record))
      await warnOnce(record)
      await print(compact(record))
    },
    async lines(records) {
      for (const record of records) await this.line(record, () => "")
    },
    raw: (content) => write(process.stdout, content),
    async note(text) {
      if (terminal.err && form !== "quiet") await write(process.stderr, `${text}\n`)
    },
    passing(text) {
      if (terminal.err && terminal.moves && form !== "quiet")
        process.stderr.write(`${ERASED}${text}`)
    },
    async next(command) {
      if (form === "human" && terminal.out) await print(paint.dim(`→ ${command}${same_server}`))
    },
    again: (command) => command + same_server,
    promises(known) {
      check([Object.fromEntries(known.map((name) => [name, null]))])
      is_checked = true
    },
  }
}

/** The beginning of the line, with nothing on it. */
const ERASED = "\r\u001b[2K"

/** The id of a record, under the name that its kind uses. */
const idOf = ({ id, event_id, request_id, name, type }: Json) =>
  String(id ?? event_id ?? request_id ?? name ?? type ?? "")

/**
 * Resolves when the stream has taken it all, so that exiting afterwards loses nothing. Throws with
 * exit 74 when stdout could not: a lost result must not look like success.
 */
export function write(stream: NodeJS.WriteStream, content: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(content, (error) => {
      if (error && stream === process.stdout && !isReaderGone(error)) reject(unwritable(error))
      else resolve()
    })
  })
}

/** A reader that went away (`| head`) is no error of ours. */
export const isReaderGone = (error: Error): boolean =>
  "code" in error && ["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED"].includes(String(error.code))

function unwritable(error: Error): Failure {
  const reason = "code" in error ? String(error.code) : error.message
  const message = `The output cannot be written: ${reason}.`
  return new Failure(exits.storage, "unwritable_output", message, { details: { reason } })
}

/** Objects whose members the user defines, so they differ from record to record. */
const free_form = ["metadata", "headers", "data", "detail", "details", "checks", "before", "after"]

/** Dotted paths reach inside; a field that is not there becomes null. */
export function pick(record: Json, fields: readonly string[]): Json {
  return Object.fromEntries(fields.map((path) => [path, valueAt(record, path.split(".")) ?? null]))
}

function valueAt(record: unknown, path: readonly string[]): unknown {
  let value = record
  for (const part of path) {
    value = typeof value === "object" && value !== null ? (value as Json)[part] : undefined
  }
  return value
}

/** The fields that none of the records has, so that a typing error does not pass for "empty". */
function unknownFields(records: readonly Json[], fields: readonly string[]): string[] {
  const mayHave = (record: Json, path: string) => isPossible(record, path.split("."))
  return fields.filter((path) => !records.some((record) => mayHave(record, path)))
}

function isPossible(value: unknown, [part = "", ...rest]: string[]): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return true
  if (!Object.hasOwn(value, part)) return false
  return rest.length === 0 || free_form.includes(part) || isPossible((value as Json)[part], rest)
}

/** Throws with exit 2, naming the fields there are, unless every one that is asked for is known. */
function requireFields(records: readonly Json[], fields: readonly string[]): void {
  if (records.length === 0) return
  const [first, ...more] = unknownFields(records, fields)
  if (first === undefined) return
  const all = [first, ...more].map((name) => `"${name}"`).join(", ")
  throw usage(`--json: there is no field ${all}; the fields are ${knownOf(records).join(", ")}`)
}

const knownOf = (records: readonly Json[]) => [...new Set(records.flatMap(Object.keys))]
