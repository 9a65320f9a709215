import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { CsvReader, type CsvRecord, plainCell } from "../lib/csv"
import { Failure } from "../lib/errors"
import {
  type ImportLine,
  type ImportOptions,
  importLines,
  patiently,
  type RefusedLine,
  textOf,
} from "../lib/file-import"
import { contactOf, given } from "../lib/input"

interface SuppressionOptions extends ImportOptions {
  reason?: string
  note?: string
}

/** One line of the file, as it is to be suppressed. Its name is the address. */
interface AddressLine extends ImportLine {
  reason: string | undefined
  note: string | undefined
  expires_at: string | undefined
}

/** Suppresses what a file names, in chunks. Exit 8 where some lines are refused. */
export const importFile: Action<SuppressionOptions> = async (context, options, path = "") => {
  const client = context.client()
  const { reason, note } = options
  return importLines<AddressLine>(context, {
    ...{ path, options, noun: "suppressions", name: "address", settings: { reason, note } },
    counts: { added: 0, existing: 0 },
    lines: () => linesOf(path, options),
    enter: (lines, key, counts) => enter(context, client, lines, { key, counts }),
    done: ({ added, existing }) => `${added} added, ${existing} suppressed before`,
  })
}

interface ChunkEntry {
  key: string
  counts: Record<string, number>
}

/** Sends one chunk, and counts what came of it. Returns the lines that were refused. */
async function enter(
  context: Context,
  client: Client,
  wanted: AddressLine[],
  { key, counts }: ChunkEntry,
): Promise<RefusedLine[]> {
  const count = (name: string, by: number) => {
    counts[name] = (counts[name] ?? 0) + by
  }
  const refused: RefusedLine[] = []
  const plain = wanted.filter(isPlain)
  if (plain.length > 0) {
    const emails = plain.map(({ name: email, reason, note }) => ({
      email,
      ...given({ reason, note }),
    }))
    const { data } = await patiently(context, () =>
      client.call("POST /v1/suppressions/bulk", {
        body: { emails } as never,
        headers: { "idempotency-key": key },
      }),
    )
    count("added", data.added)
    count("existing", data.existing)
    for (const { index, error } of data.failed) {
      const one = plain[index]
      // The place in the request says nothing here: the line of the file stands beside it.
      const message = error.message.replace(/^emails\.\d+(\.\w+)?: /, "")
      if (one) refused.push({ ...one, code: error.code, message })
    }
  }
  for (const one of wanted.filter((other) => !isPlain(other))) {
    const outcome = await enterOne(context, client, one)
    if (typeof outcome === "string") count(outcome, 1)
    else refused.push(outcome)
  }
  return refused
}

/** What a request for many can say: an email address without an end. */
const isPlain = ({ name, expires_at }: AddressLine) => expires_at === undefined && !isNumber(name)

const isNumber = (address: string) => /^\+\d+$/.test(address)

async function enterOne(
  context: Context,
  client: Client,
  one: AddressLine,
): Promise<"added" | "existing" | RefusedLine> {
  const { name, reason, note, expires_at } = one
  const body = { ...contactOf(name), ...given({ reason, note, expires_at }) }
  try {
    await patiently(context, () => client.call("POST /v1/suppressions", { body: body as never }))
    return "added"
  } catch (error) {
    if (!(error instanceof Failure) || error.status === undefined) throw error
    const { code, message, status } = error
    if (code === "conflict") return "existing"
    if (status === 422) return { ...one, code, message }
    throw error
  }
}

const ADDRESS_NAMES = ["address", "email", "email address", "email_address", "e-mail", "recipient"]

/** The lines of a CSV text with or without a head, or of a text with one address a line. */
async function* linesOf(path: string, options: SuppressionOptions): AsyncGenerator<AddressLine> {
  const reader = new CsvReader()
  let names: string[] | undefined
  const read = (records: CsvRecord[]) =>
    records.flatMap((record) => {
      if (names !== undefined) return [lineOf(record, names, options)]
      names = record.cells.map((cell) => cell.trim().toLowerCase())
      if (ADDRESS_NAMES.some((name) => names?.includes(name))) return []
      names = []
      return [lineOf(record, names, options)]
    })
  for await (const text of textOf(path)) yield* read(reader.push(text))
  yield* read(reader.end())
}

function lineOf(
  { line, cells, length }: CsvRecord,
  names: string[],
  options: SuppressionOptions,
): AddressLine {
  const cellOf = (name: string) => plainCell(cells[names.indexOf(name)] ?? "").trim() || undefined
  const named = ADDRESS_NAMES.map(cellOf).find((cell) => cell !== undefined)
  const name = names.length === 0 ? plainCell(cells[0] ?? "").trim() : (named ?? "")
  const scope = cellOf("scope_type")
  return {
    ...{ line, name, length },
    reason: cellOf("reason") ?? options.reason,
    note: cellOf("note") ?? options.note,
    expires_at: cellOf("expires_at"),
    ...(scope !== undefined &&
      scope !== "project" && { refused: `A suppression of one ${scope} cannot be imported.` }),
  }
}
