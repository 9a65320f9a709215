import { counted } from "../lib/cells"
import type { Action, Context } from "../lib/context"
import type { ReadAs } from "../lib/decoded-text"
import { exits, Failure, usage } from "../lib/errors"
import { fileFormat, mappingOf, rowsIn } from "../lib/file-columns"
import {
  enterAtOnce,
  type ImportLine,
  type ImportOptions,
  importLines,
  type RefusedLine,
  textOf,
} from "../lib/file-import"
import { COLUMNS, subscriberLine } from "./subscriber-rows"

interface SubscriberImport extends ImportOptions {
  map?: string[]
  mode?: string
  format?: string
}

/** Saves the subscribers of a file, in chunks. Exit 8 where some lines are refused. */
export const importSubscribers: Action<SubscriberImport> = async (context, options, path = "") => {
  const { map = [], mode = "upsert" } = options
  if (mode !== "upsert" && mode !== "skip") throw usage("--mode is upsert or skip")
  const format = fileFormat(path, options.format)
  const mapped = mappingOf(map, COLUMNS)
  const unread = new Set<string>()
  async function* lines(pieces: AsyncIterable<string>) {
    for await (const row of rowsIn(pieces, { ...COLUMNS, mapped, unread }, format))
      yield subscriberLine(row, unread)
  }
  if (context.flags.dryRun) return look(context, path, lines, unread)
  return importLines(context, {
    ...{ path, options, noun: "subscribers", name: "external_id", lines },
    settings: { format, mapped: [...mapped], mode },
    counts: ["created", "updated", "skipped", ...Object.keys(TOLD)],
    async enter(chunk, key, counts) {
      if (unread.size > 0)
        await context.output.note(`not read, because no field is called so: ${namesOf(unread)}`)
      unread.clear()
      const refused = await save(context, mode, chunk, key, counts)
      const failed = new Set(refused.map(({ line }) => line))
      for (const one of chunk) if (!failed.has(one.line)) count(counts, one)
      return refused
    },
    done: (counts) =>
      [
        `${counts.created} added, ${counts.updated} updated, ${counts.skipped} skipped`,
        ...told(counts),
      ].join("; "),
  })
}

/** What a summary tells of the lines that were saved. */
const TOLD: Readonly<Record<string, string>> = {
  unsubscribed: "unsubscribed, for critical messages only",
  blocked: "blocked, for no message",
  no_address: "without an email address",
  local_phone: "with a phone number without its country, kept as metadata.phone",
}

function count(counts: Record<string, number>, { fields }: ImportLine): void {
  const { status, email, metadata } = fields
  const is_local = (metadata as { phone?: unknown } | undefined)?.phone !== undefined
  for (const name of [status, email == null && "no_address", is_local && "local_phone"])
    if (typeof name === "string") counts[name] = (counts[name] ?? 0) + 1
}

const told = (counts: Record<string, number>): string[] =>
  Object.keys(TOLD).flatMap((name) => (counts[name] ? [`${counts[name]} ${TOLD[name]}`] : []))

const namesOf = (names: Iterable<string>) => [...names].slice(0, 20).join(", ")

/**
 * Sends lines in one request. When the server cannot read the request, it sends each half alone. So lines
 * with many columns are imported, and only the broken line is refused.
 */
async function save(
  context: Context,
  mode: string,
  lines: ImportLine[],
  key: string,
  counts: Record<string, number>,
): Promise<RefusedLine[]> {
  const body = { subscribers: lines.map(({ fields }) => fields), mode }
  const bulk = { route: "POST /v1/subscribers/bulk", body, place: /subscribers\.\d+\./g } as const
  try {
    return await enterAtOnce(context, bulk, lines, key, counts)
  } catch (error) {
    if (!(error instanceof Failure) || !UNREADABLE.has(error.code)) throw error
    const { code, message } = error
    if (lines.length === 1) return lines.map((line) => ({ ...line, code, message }))
    const half = Math.ceil(lines.length / 2)
    const before = await save(context, mode, lines.slice(0, half), `${key}a`, counts)
    return [...before, ...(await save(context, mode, lines.slice(half), `${key}b`, counts))]
  }
}

const UNREADABLE = new Set(["invalid_json", "payload_too_large"])

const SHOWN = 3

/** `--dry-run`: reads the whole file, and sends nothing. Only the server can check the values. */
async function look(
  context: Context,
  path: string,
  linesIn: (pieces: AsyncIterable<string>) => AsyncIterable<ImportLine>,
  unread: Set<string>,
) {
  const sample: Record<string, unknown>[] = []
  const counts = Object.fromEntries(Object.keys(TOLD).map((name) => [name, 0]))
  let [lines, refused] = [0, 0]
  const read: ReadAs = { encoding: "utf-8" }
  for await (const one of linesIn(textOf(path, read))) {
    lines += 1
    if (one.refused !== undefined) refused += 1
    else count(counts, one)
    if (one.refused === undefined && sample.length < SHOWN) sample.push(one.fields)
  }
  const left_out = [...unread]
  const found = { dry_run: true, lines, refused, ...counts, ...read, left_out, sample }
  await context.output.record(found, () =>
    [
      ...(left_out.length > 0 ? [`Columns that fill no field: ${namesOf(left_out)}`] : []),
      `${counted(lines, "line")} in ${read.encoding}, of which ${refused} cannot be read or have no id and no address. Nothing was sent.`,
      ...told(counts).map((one) => `${one}.`),
      "The server checks the other lines, and their values, when it imports them. The first ones:",
      ...sample.map((fields) => JSON.stringify(fields)),
    ].join("\n"),
  )
  return exits.done
}
