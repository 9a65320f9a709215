import { createReadStream } from "node:fs"
import { exits, Failure, usage } from "./errors"

/** More than a server accepts at once. */
const MOST_BYTES = 32 * 1024 * 1024

let stdin_reader: string | undefined

/**
 * The bytes of a file, or of stdin for `-`, which only one option of a command may take. Throws with
 * exit 7 when they are too many to be sent.
 */
export async function readBytes(path: string, option: string): Promise<Uint8Array> {
  if (path === "-") {
    if (stdin_reader !== undefined)
      throw usage(`${stdin_reader} and ${option} both read stdin; give one of them as a file`)
    stdin_reader = option
    return await collected(Bun.stdin.stream(), "stdin", option)
  }
  if (Bun.file(path).size > MOST_BYTES) throw tooLarge(path, option)
  try {
    return await collected(createReadStream(path), path, option) // a device may have no end
  } catch (error) {
    throw error instanceof Failure ? error : unreadable(error, path, option)
  }
}

/** Exit 66 for a file that is not there or is not ours to read, 74 for a disk that fails. */
export function unreadable(error: unknown, path: string, option: string): Failure {
  const reason = error instanceof Error && "code" in error ? String(error.code) : String(error)
  const why = WHY[reason]
  const message = `${option}: ${why ? why(path) : `${path} cannot be read: ${reason}.`}`
  const code = reason === "ENOENT" ? "missing_file" : "unreadable_file"
  return new Failure(why ? exits.no_input : exits.storage, code, message, {
    details: { path, reason },
    ...(why && { hint: "name a file that exists and can be read, or - for stdin" }),
  })
}

const WHY: Partial<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `There is no file ${path}.`,
  ENOTDIR: (path) => `There is no file ${path}.`,
  EISDIR: (path) => `${path} is a folder, not a file.`,
  EACCES: (path) => `You do not have permission to read ${path}.`,
  EPERM: (path) => `You do not have permission to read ${path}.`,
}

async function collected(
  source: AsyncIterable<Uint8Array>,
  name: string,
  option: string,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > MOST_BYTES) throw tooLarge(name, option)
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

/** The longest email that the API takes fits into one line. */
const MOST_CHARACTERS = 16_777_216

/** The lines of a stream of text as they come, without the empty ones. */
export async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let line = ""
  for await (const bytes of source) {
    const [first = "", ...more] = decoder.decode(bytes, { stream: true }).split("\n")
    line += first
    if (line.length > MOST_CHARACTERS) throw usage("a message has more than 16 MiB")
    for (const next of more) {
      if (line.trim()) yield line
      line = next
    }
  }
  if (line.trim()) yield line
}

function tooLarge(path: string, option: string): Failure {
  const message = `${option}: ${path} is larger than ${MOST_BYTES / 1024 / 1024} MB.`
  return new Failure(exits.invalid, "payload_too_large", message, {
    details: { limit_bytes: MOST_BYTES },
  })
}

/** The same as UTF-8 text. Other encodings are refused instead of being sent broken. */
export async function readText(path: string, option: string): Promise<string> {
  const bytes = await readBytes(path, option)
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw new Failure(exits.invalid, "invalid_text", `${option}: ${path} is not UTF-8 text.`)
  }
}

/** The same as JSON. */
export async function readJson(path: string, option: string): Promise<unknown> {
  const text = await readText(path, option)
  try {
    return JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const message = `${option}: ${path} is not JSON: ${reason}`
    throw new Failure(exits.invalid, "invalid_json", message)
  }
}

/** The JSON object of a file; {} without one. */
export async function objectIn(path: unknown, option: string): Promise<Record<string, unknown>> {
  if (typeof path !== "string") return {}
  const body = await readJson(path, option)
  if (isObject(body)) return body
  throw usage(`${option}: the file must have one JSON object`)
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The record with a value at a path of names. Objects on the way stay; anything else there is replaced. */
export function placed(
  record: Record<string, unknown>,
  [step = "", ...rest]: readonly string[],
  value: unknown,
): Record<string, unknown> {
  if (rest.length === 0) return { ...record, [step]: value }
  const inner = Object.hasOwn(record, step) ? record[step] : undefined
  return { ...record, [step]: placed(isObject(inner) ? inner : {}, rest, value) }
}

/** JSON, or the text itself where it is none. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** `k=v` and JSON objects, as an option takes them several times, together in one object. */
export function pairs(given: readonly string[], option: string): Record<string, unknown> {
  const all: Record<string, unknown> = {}
  for (const text of given) {
    if (text.trimStart().startsWith("{")) {
      Object.assign(all, parsedObject(text, option))
      continue
    }
    const at = text.indexOf("=")
    if (at < 1) throw usage(`${option}: "${text}" is neither k=v nor a JSON object`)
    all[text.slice(0, at)] = text.slice(at + 1)
  }
  return all
}

/** One JSON object, or exit 2. */
export function parsedObject(text: string, option: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw usage(`${option}: ${text} is not JSON`)
  }
  if (isObject(value)) return value
  throw usage(`${option}: ${text} is not a JSON object`)
}

/** One JSON object, or a file of it behind an `@`; `@-` is stdin. */
export const objectOrFile = async (text: string, option: string) =>
  parsedObject(text.startsWith("@") ? await readText(text.slice(1), option) : text, option)

/** A secret of one line, or a file of it behind an `@`; `@-` is stdin. */
export const secretOrFile = async (text: string, option: string) =>
  text.startsWith("@") ? (await readText(text.slice(1), option)).trim() : text

/** `on` or `off`, as an option of a setting takes it; undefined stays undefined. */
export function onOff(text: string | undefined, option: string): boolean | undefined {
  if (text === undefined) return undefined
  if (text === "on" || text === "true") return true
  if (text === "off" || text === "false") return false
  throw usage(`${option}: "${text}" is neither on nor off`)
}

/** The field that an address fills: `email` with an at sign, else `phone`. */
export const contactOf = (address: string): { email: string } | { phone: string } =>
  address.includes("@") ? { email: address } : { phone: address }

/** Without what was not said, so that it stays as it is. */
export const given = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>
  }

/** A whole number of 0 or more, as an option takes it. */
export function wholeNumber(text: string, option: string): number {
  if (!/^\d+$/.test(text)) throw usage(`${option}: "${text}" is not a whole number`)
  return Number(text)
}
