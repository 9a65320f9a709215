import { usage } from "./failure"

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
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw usage(`${option}: ${text} is not a JSON object`)
  }
  return value as Record<string, unknown>
}

/** `X-Name: value`, several times. */
export const headerFields = (given: readonly string[]): Record<string, string> =>
  Object.fromEntries(given.map(parted))

function parted(text: string): [string, string] {
  const at = text.indexOf(":")
  if (at < 1) throw usage(`--header: "${text}" has no colon`, "write 'X-Name: value'")
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}
