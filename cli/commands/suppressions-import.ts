import { createHash } from "node:crypto"
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { CsvReader, type CsvRecord, csvLine, plainCell } from "../lib/csv"
import { exits, Failure, isPassing, isSilence } from "../lib/errors"
import { contactOf, given, readText } from "../lib/input"
import { pause } from "../lib/time"

interface ImportOptions {
  reason?: string
  note?: string
  errors?: string
  restart?: boolean
}

/** One line of the file, as it is to be suppressed. */
interface ImportLine {
  line: number
  address: string
  reason: string | undefined
  note: string | undefined
  expires_at: string | undefined
  /** Why it cannot be: it is said without asking the server. */
  refused?: string
}

/** What became of the lines so far; kept beside the file, so that an import can go on. */
interface ImportProgress {
  /** Of the file: another file begins anew. */
  sha256: string
  /** Of this import: a chunk that was answered and not noted is not counted twice. */
  import_id: string
  lines: number
  added: number
  existing: number
  failed: number
}

interface RefusedLine {
  line: number
  address: string
  code: string
  message: string
}

/** Of one request (contract 20, section 5). */
const CHUNK = 1000

/** Suppresses what a file names, in chunks. Exit 8 where some lines are refused. */
export const importFile: Action<ImportOptions> = async (context, options, path = "") => {
  const text = await readText(path, "FILE")
  const lines = linesOf(text, options)
  const files = filesFor(path, options)
  const sha256 = createHash("sha256")
    .update(JSON.stringify([text, options.reason]))
    .digest("hex")
  const progress = options.restart ? undefined : before(files.progress, sha256)
  const at = progress ?? freshProgress(sha256)
  if (!progress) rmSync(files.errors, { force: true })
  else await context.output.note(`goes on at line ${lines[at.lines]?.line ?? "-"}`)
  const client = context.client()
  while (at.lines < lines.length) {
    const chunk = lines.slice(at.lines, at.lines + CHUNK)
    const refused = await enter(context, client, chunk, at)
    note(files, refused, at)
    context.output.passing(`${at.lines} of ${lines.length} addresses`)
  }
  context.output.passing("")
  if (files.progress !== undefined) rmSync(files.progress, { force: true })
  return await told(context, at, files.errors)
}

const freshProgress = (sha256: string): ImportProgress => ({
  ...{ sha256, import_id: crypto.randomUUID() },
  ...{ lines: 0, added: 0, existing: 0, failed: 0 },
})

interface ImportFiles {
  errors: string
  /** None where the addresses come from stdin. */
  progress: string | undefined
}

const filesFor = (path: string, { errors }: ImportOptions): ImportFiles => ({
  errors: errors ?? (path === "-" ? "suppressions.errors.csv" : `${path}.errors.csv`),
  progress: path === "-" ? undefined : `${path}.progress`,
})

function before(path: string | undefined, sha256: string): ImportProgress | undefined {
  if (path === undefined) return undefined
  try {
    const kept = JSON.parse(readFileSync(path, "utf8")) as ImportProgress
    return kept.sha256 === sha256 && Number.isInteger(kept.lines) ? kept : undefined
  } catch {
    return undefined
  }
}

/** Sends one chunk, and counts what came of it. Returns the lines that were refused. */
async function enter(
  context: Context,
  client: Client,
  chunk: ImportLine[],
  at: ImportProgress,
): Promise<RefusedLine[]> {
  const refused = chunk.flatMap((one): RefusedLine[] =>
    one.refused ? [{ ...one, code: "not_imported", message: one.refused }] : [],
  )
  const wanted = chunk.filter((one) => !one.refused)
  const plain = wanted.filter(isPlain)
  const key = `import-${at.import_id}-${at.lines}`
  if (plain.length > 0) {
    const emails = plain.map(({ address: email, reason, note: text }) => ({
      email,
      ...given({ reason, note: text }),
    }))
    const { data } = await patiently(context, () =>
      client.call("POST /v1/suppressions/bulk", {
        body: { emails } as never,
        headers: { "idempotency-key": key },
      }),
    )
    at.added += data.added
    at.existing += data.existing
    for (const { index, error } of data.failed) {
      const one = plain[index]
      // The place in the request says nothing here: the line of the file stands beside it.
      const message = error.message.replace(/^emails\.\d+(\.\w+)?: /, "")
      if (one) refused.push({ ...one, code: error.code, message })
    }
  }
  for (const one of wanted)
    if (!isPlain(one)) refused.push(...(await enterOne(context, client, one, at)))
  at.lines += chunk.length
  at.failed += refused.length
  return refused.sort((one, other) => one.line - other.line)
}

/** What a request for many can say: an email address without an end. */
const isPlain = ({ address, expires_at }: ImportLine) =>
  expires_at === undefined && !isNumber(address)

const isNumber = (address: string) => /^\+\d+$/.test(address)

async function enterOne(
  context: Context,
  client: Client,
  one: ImportLine,
  at: ImportProgress,
): Promise<RefusedLine[]> {
  const { address, reason, note: text, expires_at } = one
  const body = { ...contactOf(address), ...given({ reason, note: text, expires_at }) }
  try {
    await patiently(context, () => client.call("POST /v1/suppressions", { body: body as never }))
    at.added += 1
  } catch (error) {
    if (!(error instanceof Failure) || error.status === undefined) throw error
    const { code, message, status } = error
    if (code === "conflict") at.existing += 1
    else if (status === 422) return [{ ...one, code, message }]
    else throw error
  }
  return []
}

/** Of a server that is silent, or cannot now. A rate limit is waited for as often as it comes. */
const MOST_TRIES = 6
const LONGEST_WAIT_MS = 60_000

async function patiently<Answer>({ output }: Context, ask: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; ) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof Failure) || !(isPassing(error) || isSilence(error))) throw error
      const is_limit = error.status === 429
      if (!is_limit && tries++ === MOST_TRIES) throw resumable(error)
      const after = Number(error.details.retry_after)
      const wait = Number.isFinite(after) ? after * 1000 : 500 * 2 ** tries
      const ms = Math.min(LONGEST_WAIT_MS, Math.max(100, wait))
      output.passing(`${error.message} Next attempt in ${Math.ceil(ms / 1000)} s.`)
      await pause(ms)
    }
  }
}

const resumable = ({ exit, code, message, details, status }: Failure) =>
  new Failure(exit, code, message, {
    details,
    hint: "what was imported stays: give the same command again to go on",
    ...(status !== undefined && { status }),
  })

/** First the lines, then the place: what is written twice after a crash is a line of the error file. */
function note({ errors, progress }: ImportFiles, refused: RefusedLine[], at: ImportProgress): void {
  if (refused.length > 0) {
    const is_first = at.failed === refused.length
    const head = is_first ? csvLine(["line", "address", "code", "message"]) : ""
    const lines = refused.map(({ line, address, code, message }) =>
      csvLine([String(line), address, code, message]),
    )
    appendFileSync(errors, head + lines.join(""))
  }
  if (progress === undefined) return
  writeFileSync(`${progress}.new`, JSON.stringify(at))
  renameSync(`${progress}.new`, progress)
}

async function told(
  { output, paint }: Context,
  { added, existing, failed }: ImportProgress,
  path: string,
): Promise<number> {
  const errors = failed > 0 ? path : null
  await output.record({ added, existing, failed, errors }, () =>
    [
      `${paint.green("✓")} ${added} added, ${existing} suppressed before`,
      ...(errors ? [`${paint.red("✗")} ${failed} refused: see ${errors}`] : []),
    ].join("\n"),
  )
  return failed > 0 ? exits.partly_failed : exits.done
}

const ADDRESS_NAMES = ["address", "email", "email address", "email_address", "e-mail", "recipient"]

/** The lines of a CSV text with or without a head, or of a text with one address a line. */
function linesOf(text: string, options: ImportOptions): ImportLine[] {
  const reader = new CsvReader()
  const records = [...reader.push(text), ...reader.end()]
  const [first] = records
  const names = first?.cells.map((cell) => cell.trim().toLowerCase()) ?? []
  const has_head = ADDRESS_NAMES.some((name) => names.includes(name))
  if (!has_head) return records.map((record) => lineOf(record, [], options))
  return records.slice(1).map((record) => lineOf(record, names, options))
}

function lineOf({ line, cells }: CsvRecord, names: string[], options: ImportOptions): ImportLine {
  const cellOf = (name: string) => plainCell(cells[names.indexOf(name)] ?? "").trim() || undefined
  const named = ADDRESS_NAMES.map(cellOf).find((cell) => cell !== undefined)
  const address = names.length === 0 ? plainCell(cells[0] ?? "").trim() : (named ?? "")
  const scope = cellOf("scope_type")
  return {
    line,
    address,
    reason: cellOf("reason") ?? options.reason,
    note: cellOf("note") ?? options.note,
    expires_at: cellOf("expires_at"),
    ...(scope !== undefined &&
      scope !== "project" && { refused: `A suppression of one ${scope} cannot be imported.` }),
  }
}
