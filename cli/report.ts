import { type Failure, nextStep } from "./failure"
import type { Typed } from "./flag-names"
import { cleanLine, type Paint } from "./terminal"

/** The API's own error body, for programs. */
export function errorBody(failure: Failure): string {
  const { code, message, details, request_id } = failure
  const meta = request_id ? { meta: { request_id } } : {}
  return JSON.stringify({ error: { code, message, details }, ...meta })
}

/** What happened, which value, what to do next: for people. `typed` names flags for fields. */
export function errorText(failure: Failure, paint: Paint, typed: (path: string) => Typed): string {
  const { details, code } = failure
  const faults = faultsOf(failure).map((fault) => faultLine(fault, typed))
  const [only] = faults
  const head = faults.length > 1 ? `${faults.length} values are wrong.` : only
  const lines = [
    `${paint.red("✗")} ${cleanText(head ?? failure.message)} ${paint.dim(`(${code})`)}`,
  ]
  if (faults.length > 1) lines.push(...faults.map((fault) => `  ${cleanLine(fault)}`))
  for (const [name, value] of detailLines(details, faults.length > 0)) {
    if (isTold(failure, name, value)) continue
    const label = name && `${paint.dim(cleanLine(name))}  `
    lines.push(`  ${label}${cleanLine(value)}`)
  }
  const step = nextStep(failure)
  if (step) lines.push(`  → ${cleanLine(step)}`)
  if (failure.request_id) lines.push(paint.dim(`  request ${cleanLine(failure.request_id)}`))
  return lines.join("\n")
}

interface Fault {
  path: string
  message: string
}

/** Every field that an answer complains about. */
function faultsOf({ details, message }: Failure): Fault[] {
  const { fields, field, header } = details
  if (Array.isArray(fields) && fields.length > 0) {
    return fields.map((one: Partial<Fault>) => ({
      path: String(one.path),
      message: String(one.message),
    }))
  }
  const path = typeof field === "string" ? field : header
  return typeof path === "string" ? [{ path, message: withoutPath(message, path) }] : []
}

const withoutPath = (message: string, path: string): string =>
  message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message

/** `--to "ann": This is not one email address.` */
function faultLine({ path, message }: Fault, typed: (path: string) => Typed): string {
  const { name, value } = typed(path)
  const shown = value !== undefined && !hasWord(message, value) ? ` "${value}"` : ""
  return `${name}${shown}: ${withoutPath(message, path)}`
}

const hasWord = (message: string, word: string): boolean =>
  message.includes(`"${word}"`) || message.split(/[\s,;]+|[.:]\s|\.$/).includes(word)

/** The message, or the hint, has it already. */
function isTold({ message, hint = "" }: Failure, name: string, value: string): boolean {
  return name === "faults" || message.includes(value) || hint.includes(value)
}

// Faults of a configuration come as several lines.
const cleanText = (text: string) => text.split("\n").map(cleanLine).join("\n  ")

/** Said already: by the line of the field, or by the next step. */
const SAID = ["field", "fields", "header", "next", "required_role", "required_scope"]

function detailLines(details: Record<string, unknown>, is_field: boolean): [string, string][] {
  return Object.entries(details).flatMap(([name, value]): [string, string][] => {
    if (SAID.includes(name) || (is_field && name === "reason")) return []
    if (value === null || value === "") return []
    if (name === "candidates" && Array.isArray(value)) return value.map((one) => ["", String(one)])
    return [[name, typeof value === "string" ? value : JSON.stringify(value)]]
  })
}
