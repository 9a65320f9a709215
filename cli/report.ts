import { type Failure, nextStep } from "./failure"
import { cleanLine, type Paint } from "./terminal"

/** The API's own error body, for programs. */
export function errorBody(failure: Failure): string {
  const { code, message, details, request_id } = failure
  const meta = request_id ? { meta: { request_id } } : {}
  return JSON.stringify({ error: { code, message, details }, ...meta })
}

/** What happened, which value, what to do next: for people. */
export function errorText(failure: Failure, paint: Paint): string {
  const lines = [
    `${paint.red("✗")} ${cleanText(failure.message)} ${paint.dim(`(${failure.code})`)}`,
  ]
  for (const [name, value] of detailLines(failure.details)) {
    if (isTold(failure, name, value)) continue
    lines.push(`  ${paint.dim(cleanLine(name))}  ${cleanLine(value)}`)
  }
  const step = nextStep(failure)
  if (step) lines.push(`  → ${cleanLine(step)}`)
  if (failure.request_id) lines.push(paint.dim(`  request ${cleanLine(failure.request_id)}`))
  return lines.join("\n")
}

/** The message, or the hint, has it already. */
function isTold({ message, hint = "" }: Failure, name: string, value: string): boolean {
  return name === "faults" || message.includes(value) || hint.includes(value)
}

// Faults of a configuration come as several lines.
const cleanText = (text: string) => text.split("\n").map(cleanLine).join("\n  ")

function detailLines(details: Record<string, unknown>): [string, string][] {
  return Object.entries(details).flatMap(([name, value]): [string, string][] => {
    if (name === "fields" && Array.isArray(value)) return value.map(fieldLine)
    if (value === null || value === "") return []
    return [[name, typeof value === "string" ? value : JSON.stringify(value)]]
  })
}

function fieldLine(field: unknown): [string, string] {
  const { path, message } = field as { path?: unknown; message?: unknown }
  return [String(path), String(message)]
}
