import { decidedSettings } from "./config"
import { mask, maskField } from "./log-masks"
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
 * One JSON line for the person who starts the server, with a secret that they need: it is not
 * masked, and not kept for a crash report.
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
