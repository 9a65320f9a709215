import { decidedSettings } from "./config"
import { now } from "./time"

type Level = "debug" | "info" | "warn" | "error"
export type Fields = Record<string, unknown>

const levels: readonly Level[] = ["debug", "info", "warn", "error"]
const KEPT_LINES = 200

const kept: string[] = []

/**
 * One line an entry on stderr: JSON off a terminal, text on one. Secrets are masked by the name of
 * the field and by the look of the value, so a careless call cannot leak one.
 */
export const log = {
  debug: (message: string, fields?: Fields): void => write("debug", message, fields),
  info: (message: string, fields?: Fields): void => write("info", message, fields),
  warn: (message: string, fields?: Fields): void => write("warn", message, fields),
  error: (message: string, fields?: Fields): void => write("error", message, fields),
}

/** The last 200 entries of any level as JSON lines, masked: what a crash report carries. */
export const recentLines = (): readonly string[] => [...kept]

/** Whether every line is for a program, and thus JSON. */
export const isJsonLog = (): boolean => !isReadable(decidedSettings()?.["log.format"] ?? "auto")

/**
 * Prints one JSON line with a secret for the person that starts the server. The line is not masked,
 * and a crash report does not keep it.
 */
export function announce(message: string, fields: Fields): void {
  process.stderr.write(`${JSON.stringify({ at: now(), level: "warn", message, ...fields })}\n`)
}

function write(level: Level, message: string, fields: Fields = {}): void {
  const at = now()
  const text = mask(message)
  const clean: Fields = {}
  for (const [name, value] of Object.entries(fields)) clean[name] = maskField(name, value)
  const line = JSON.stringify({ at, level, message: text, ...clean })
  kept.push(line)
  if (kept.length > KEPT_LINES) kept.shift()

  const settings = decidedSettings()
  if (levels.indexOf(level) < levels.indexOf(settings?.["log.level"] ?? "info")) return
  const readable = isReadable(settings?.["log.format"] ?? "auto")
  process.stderr.write(`${readable ? asText(at, level, text, clean) : line}\n`)
}

const isReadable = (format: "auto" | "json" | "text") =>
  format === "text" || (format === "auto" && process.stderr.isTTY === true)

function asText(at: string, level: Level, message: string, fields: Fields): string {
  const rest = Object.entries(fields).map(([name, value]) => {
    const written = typeof value === "string" && /^[\w.:/@+-]+$/.test(value)
    return ` ${name}=${written ? value : JSON.stringify(value)}`
  })
  // JSON does the escaping of fields; the message may carry a peer's words, so it is escaped too.
  const plain = JSON.stringify(message).slice(1, -1).replaceAll('\\"', '"')
  return `${at.slice(11, 23)} ${level.padEnd(5)} ${plain}${rest.join("")}`
}

const MASK = "********"
const MAX_DEPTH = 6
const MOST_CHARACTERS = 2048

/** What databases add to an error: the statement, and the rows themselves. */
const rowFields: ReadonlySet<string> = new Set(["query", "params", "detail", "where"])

const secret_words = [
  "pass(word|wd|phrase)?",
  "secret",
  "authorization",
  "cookie",
  "credential",
  "(private|master|api)_?key",
  "(^|[_-])(token|otp|pin)",
]
const secretName = new RegExp(`(${secret_words.join("|")})s?$`, "i")

const secretValues: readonly [RegExp, string][] = [
  [/\b(svc_(?:live|test)_)[A-Za-z0-9_-]+/g, `$1${MASK}`],
  [/\b(svca_(?:sec|(?:live_|test_)?pub)_)[A-Za-z0-9_-]+/g, `$1${MASK}`],
  [/\b(whsec_)[A-Za-z0-9+/=_-]+/g, `$1${MASK}`],
  [/\b(belfry_[a-z]+_)[A-Za-z0-9_-]{20,}/g, `$1${MASK}`],
  [/\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, MASK],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, `$1 ${MASK}`],
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:)[^\s@]*@/gi, `$1${MASK}@`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
]

/** By their source, so that the same look is kept once. */
const addedValues = new Map<string, RegExp>()

/** From now on, what comes behind the first group of this look is masked in every text. */
export const maskAlso = (look: RegExp): void => void addedValues.set(look.source, look)

/** At most 2 kB of the text, without anything that looks like a secret of ours or of a URL. */
function mask(text: string): string {
  const cut = text.length > MOST_CHARACTERS
  const start = cut ? `${text.slice(0, MOST_CHARACTERS).toWellFormed()}…` : text
  const known = secretValues.reduce((cleaned, [look, put]) => cleaned.replace(look, put), start)
  let cleaned = known
  for (const look of addedValues.values()) cleaned = cleaned.replace(look, `$1${MASK}`)
  return cleaned
}

/**
 * A value fit for a JSON line: secrets masked by field name or by look, errors written out with
 * their stack, what JSON cannot hold named instead.
 */
function maskField(name: string, value: unknown, depth = 0): unknown {
  if (value === null || value === undefined || typeof value === "boolean") return value
  if (secretName.test(name) && typeof value !== "number") return MASK
  if (typeof value === "string") return mask(value)
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value)
  if (value instanceof Error) return maskError(value, depth)
  if (typeof value !== "object") return String(value)
  if (depth >= MAX_DEPTH) return "…"
  if (value instanceof Date) return value.toJSON()
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
  if (Array.isArray(value)) return value.map((item) => maskField(name, item, depth + 1))
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([key, item]) => [key, maskField(key, item, depth + 1)]))
}

function maskError(error: Error, depth: number): unknown {
  const own: Record<string, unknown> = { ...error }
  const message = withoutRows(error.message)
  const written: Record<string, unknown> = { name: error.name, message: mask(message) }
  if (error.stack)
    written.stack = mask(withoutRows(error.stack.replace(error.message, () => message)))
  for (const [key, item] of Object.entries(own)) {
    if (rowFields.has(key)) continue
    if (depth < MAX_DEPTH && !(key in written)) written[key] = maskField(key, item, depth + 1)
  }
  if (error.cause !== undefined && depth < MAX_DEPTH) {
    written.cause = maskField("cause", error.cause, depth + 1)
  }
  return written
}

/** Drizzle ends its message with the values of the statement: bodies, addresses, whole mails. */
const withoutRows = (text: string) => text.replace(/\nparams:[\s\S]*/, "")
