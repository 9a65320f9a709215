import { createHash } from "node:crypto"
import {
  appendFileSync,
  closeSync,
  constants,
  createReadStream,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs"
import type { Context } from "./context"
import { csvLine } from "./csv"
import { type ReadAs, textIn } from "./decoded-text"
import { type Exit, exits, Failure, isPassing, isSilence, usage } from "./errors"
import type { OptionWords } from "./field-flags"
import { readFileIn, writeFileIn } from "./folder-files"
import { unreadable } from "./input"
import { pause } from "./time"

/** One line of a file, or one record that takes several. */
export interface ImportLine {
  line: number
  /** What the error file names it by. */
  name: string
  /** Characters. */
  length: number
  /** As the server takes them. */
  fields: Record<string, unknown>
  /** Why it cannot be imported: it is said without asking the server. */
  refused?: string | undefined
}

export interface RefusedLine extends Pick<ImportLine, "line" | "name"> {
  code: string
  message: string
}

export const IMPORT_OPTIONS: readonly OptionWords[] = [
  ["--errors <file>", "file for the lines that are refused (default: FILE.errors.csv)"],
  ["--restart", "begin at the first line, though an earlier import was interrupted"],
]

export interface ImportOptions {
  errors?: string
  restart?: boolean
}

/** What became of the lines so far; kept beside the file, so that an import can go on. */
interface ImportProgress {
  /** Of the file and of what was asked for: another file begins anew. */
  sha256: string
  /** Of this import: a chunk that was answered and not noted is not counted twice. */
  import_id: string
  lines: number
  failed: number
  counts: Record<string, number>
}

type Counts = Record<string, number>

/** What is imported, and how. */
interface FileImport {
  path: string
  options: ImportOptions
  /** Where the lines come from stdin or a pipe, the error file is called `<noun>.errors.csv`. */
  noun: string
  /** What `name` is called in the error file. */
  name: string
  /** What changes the meaning of the same file. */
  settings: unknown
  /** What the server counts beside failed lines. */
  counts: readonly string[]
  lines: (pieces: AsyncIterable<string>) => AsyncIterable<ImportLine>
  /** Sends lines, and adds to the counts what came of them. Returns those that were refused. */
  enter: (lines: ImportLine[], key: string, counts: Counts) => Promise<RefusedLine[]>
  /** What was done, as one line for people. */
  done: (counts: Counts) => string
}

/** Lines of one request: lists, subscribers and users alike. */
const CHUNK = 1000

/** Characters of one request, so that a chunk of long lines needs little memory and fits into a body. */
const CHUNK_CHARACTERS = 4_194_304

/**
 * Imports a file in chunks of up to 1,000 lines: writes refused lines into a file, shows progress, and goes
 * on where an earlier import of the same file ended. Prints the counts. Exit 8 where some lines are refused.
 */
export async function importLines(context: Context, file: FileImport): Promise<Exit> {
  const files = filesFor(file)
  requireOther(file.path, files.errors)
  const { sha256, total } = await lookOver(file)
  const known = file.options.restart ? undefined : before(files.progress, sha256)
  const at = known ?? {
    ...{ sha256, import_id: crypto.randomUUID(), lines: 0, failed: 0 },
    counts: Object.fromEntries(file.counts.map((name) => [name, 0])),
  }
  requireWritable(files, at)
  if (at.failed === 0) removeFile(files.errors)
  if (known) await context.output.note(`the import continues after line ${at.lines}`)
  const read: ReadAs = { encoding: "utf-8" }
  for await (const chunk of chunksOf(file.lines(textOf(file.path, read)), at.lines)) {
    const own = chunk.flatMap((one): RefusedLine[] =>
      one.refused ? [{ ...one, code: "not_imported", message: one.refused }] : [],
    )
    const wanted = chunk.filter((one) => !one.refused)
    const refused = await file.enter(wanted, `import-${at.import_id}-${at.lines}`, at.counts)
    const rising = [...own, ...refused].sort((one, other) => one.line - other.line)
    at.lines += chunk.length
    at.failed += rising.length
    note(files, file.name, rising, at)
    context.output.passing(`${at.lines}${total === undefined ? "" : ` of ${total}`} lines`)
  }
  context.output.passing("")
  if (files.progress !== undefined) rmSync(files.progress, { force: true })
  const { counts, failed } = at
  const errors = failed > 0 ? files.errors : null
  await context.output.record({ ...counts, failed, errors, ...read }, () => {
    const { paint } = context
    const read_as = read.encoding === "utf-8" ? "" : ` (read as ${read.encoding})`
    const done = `${paint.green("✓")} ${file.done(counts)}${read_as}`
    return errors ? `${done}\n${paint.red("✗")} ${failed} refused: see ${errors}` : done
  })
  return failed > 0 ? exits.partly_failed : exits.done
}

async function* chunksOf(lines: AsyncIterable<ImportLine>, done: number) {
  let chunk: ImportLine[] = []
  let characters = 0
  let at = 0
  for await (const line of lines) {
    if (at++ < done) continue
    chunk.push(line)
    characters += line.length
    if (chunk.length < CHUNK && characters < CHUNK_CHARACTERS) continue
    yield chunk
    chunk = []
    characters = 0
  }
  if (chunk.length > 0) yield chunk
}

interface Bulk {
  route: "POST /v1/subscribers/bulk" | "POST /v1/suppressions/bulk" | "POST /v1/auth/users/import"
  body: object
  /** Of a line in the request. An error need not say it, because the line of the file stands beside it. */
  place: RegExp
}

type BulkAnswer = {
  data: Counts & { failed: { index: number; error: { code: string; message: string } }[] }
}

/** Sends lines in one request, and adds to the counts what came of them. Returns those that were refused. */
export async function enterAtOnce(
  context: Context,
  { route, body, place }: Bulk,
  lines: ImportLine[],
  key: string,
  counts: Counts,
): Promise<RefusedLine[]> {
  if (lines.length === 0) return []
  const input = { body, headers: { "idempotency-key": key } }
  const client = context.client()
  const { data } = (await patiently(context, () => client.send(route, input))) as BulkAnswer
  for (const name of Object.keys(counts)) counts[name] = (counts[name] ?? 0) + (data[name] ?? 0)
  return data.failed.flatMap(({ index, error: { code, message } }) => {
    const line = lines[index]
    return line ? [{ ...line, code, message: message.replaceAll(place, "") }] : []
  })
}

interface ImportFiles {
  errors: string
  /** None where the lines can be read only once. */
  progress: string | undefined
}

const filesFor = ({ path, noun, options: { errors } }: FileImport): ImportFiles => ({
  errors: errors ?? (isReadOnce(path) ? `${noun}.errors.csv` : `${path}.errors.csv`),
  progress: isReadOnce(path) ? undefined : `${path}.progress`,
})

/** stdin, and a pipe such as the `<(…)` of a shell: what was read from it is gone. */
const isReadOnce = (path: string): boolean =>
  path === "-" || statSync(path, { throwIfNoEntry: false })?.isFIFO() === true

/** An error file begins empty, so it is never the file that is imported. */
function requireOther(path: string, errors: string): void {
  if (path !== "-" && placeOf(path) === placeOf(errors))
    throw usage("--errors names FILE itself, which would be overwritten")
}

/** Without symbolic links, where the file exists. */
function placeOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK } = constants

/** Before anything is sent: what was imported and could not be noted would be imported again. */
function requireWritable({ errors, progress }: ImportFiles, at: ImportProgress): void {
  try {
    closeSync(openSync(errors, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK)) // a pipe that nobody reads would wait
  } catch (error) {
    throw unwritable(error, errors, "name another file with --errors")
  }
  try {
    if (progress !== undefined) keep(progress, at)
  } catch (error) {
    if (at.failed === 0) removeFile(errors)
    const hint = "copy FILE into a folder that you may write, or give the lines on stdin as -"
    throw unwritable(error, progress ?? "", hint)
  }
}

/** Never a device, such as `/dev/null`. */
function removeFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) rmSync(path)
}

function unwritable(error: unknown, path: string, hint: string): Failure {
  const reason = error instanceof Error && "code" in error ? String(error.code) : String(error)
  const message = `${path} cannot be written: ${reason}.`
  return new Failure(exits.storage, "unwritable_file", message, { details: { path, reason }, hint })
}

/**
 * Reads the whole file for its hash and its number of lines. So a file that cannot be read to its end is
 * refused before anything is sent. stdin and a pipe are read only once, so they have neither.
 */
async function lookOver({ path, settings, lines }: FileImport) {
  if (isReadOnce(path)) return { sha256: "", total: undefined }
  const hash = createHash("sha256").update(JSON.stringify(settings))
  for await (const bytes of bytesOf(path)) hash.update(bytes)
  let total = 0
  for await (const _ of lines(textOf(path))) total += 1
  return { sha256: hash.digest("hex"), total }
}

const MOST_PROGRESS_BYTES = 65_536

function before(path: string | undefined, sha256: string): ImportProgress | undefined {
  if (path === undefined) return undefined
  try {
    const kept = JSON.parse(readFileIn(path, MOST_PROGRESS_BYTES)) as ImportProgress
    return kept.sha256 === sha256 && Number.isInteger(kept.lines) ? kept : undefined
  } catch {
    return undefined
  }
}

/** First the lines, then the place: what is written twice after a crash is a line of the error file. */
function note(
  { errors, progress }: ImportFiles,
  name: string,
  refused: RefusedLine[],
  at: ImportProgress,
): void {
  if (refused.length > 0) {
    const is_first = at.failed === refused.length
    const head = is_first ? csvLine(["line", name, "code", "message"]) : ""
    const lines = refused.map((one) => csvLine([String(one.line), one.name, one.code, one.message]))
    appendFileSync(errors, head + lines.join(""))
  }
  if (progress !== undefined) keep(progress, at)
}

function keep(path: string, at: ImportProgress): void {
  writeFileIn(`${path}.new`, JSON.stringify(at))
  renameSync(`${path}.new`, path)
}

/** The text of a file, or of stdin for `-`, in pieces. Throws exit 66 or 74, and exit 7 for what is no text. */
export const textOf = (path: string, read?: ReadAs) =>
  textIn(path === "-" ? Bun.stdin.stream() : bytesOf(path), path, read)

async function* bytesOf(path: string): AsyncGenerator<Buffer> {
  try {
    for await (const bytes of createReadStream(path)) yield bytes as Buffer
  } catch (error) {
    throw unreadable(error, path, "FILE")
  }
}

/** How long a command goes on asking. */
interface Patience {
  /** So often a rate limit is waited for. */
  most_limits: number
  /** What to do when it gives up. */
  hint: string
}

/** An import or a long change: what was done stays, and each limit that passes brings it further. */
const TO_THE_END: Patience = {
  most_limits: Number.POSITIVE_INFINITY,
  hint: "the server keeps what it has done: give the same command again to continue",
}

/** Of a server that is silent, or cannot now. */
const MOST_TRIES = 6
const LONGEST_WAIT_MS = 60_000

/** Asks until there is an answer, or a refusal that stays. */
export async function patiently<Answer>(
  { output }: Context,
  ask: () => Promise<Answer>,
  { most_limits, hint } = TO_THE_END,
): Promise<Answer> {
  let limits = 0
  for (let tries = 1; ; ) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof Failure) || !(isPassing(error) || isSilence(error))) throw error
      const is_last = error.status === 429 ? limits++ === most_limits : tries++ === MOST_TRIES
      if (is_last) throw error.with({ hint })
      const after = Number(error.details.retry_after)
      const wait = Number.isFinite(after) ? after * 1000 : 500 * 2 ** tries
      const ms = Math.min(LONGEST_WAIT_MS, Math.max(100, wait))
      output.passing(`${error.message} Next attempt in ${Math.ceil(ms / 1000)} s.`)
      await pause(ms)
    }
  }
}
