import { LONGEST_RECORD, type TextLine } from "./csv"
import { exits, Failure } from "./errors"
import { isObject } from "./input"

/** Names that services give to the list of an answer. */
const LISTS =
  /^(data|results?|items|contacts|members|subscribers|recipients|suppressions|suppresseddestinationsummaries|bounces|complaints|unsubscribes)$/i

/** The text of one JSON object, and the line where it begins. */
export type ObjectText = Pick<TextLine, "line" | "text">

/**
 * The JSON objects of a text that comes in pieces: what stands one after the other, or in the list of each document, such
 * as `[{…}]` and `{"data": [{…}]}`. An address that stands in the list as a text is `{"email": …}`. Throws exit 7 where
 * the text ends within a document.
 */
export async function* objectsIn(pieces: AsyncIterable<string>): AsyncGenerator<ObjectText> {
  const open: (string | typeof LIST)[] = [] // the names of the fields that hold what is open
  let [line, name, in_text, is_escaped] = [1, "", false, false]
  let found: (ObjectText & { depth: number }) | undefined
  for await (const piece of pieces) {
    for (const char of piece) {
      if (found && found.text.length <= LONGEST_RECORD) found.text += char
      if (char === "\n") line += 1
      if (in_text) {
        if (char !== '"' || is_escaped) {
          if (name.length < LONGEST_NAME) name += char
          is_escaped = char === "\\" && !is_escaped
          continue
        }
        in_text = false
        if (open.at(-1) === LIST) yield { line, text: `{"email": "${name}"}` }
      } else if (char === '"') [in_text, name] = [true, ""]
      else if (char === "{") {
        if (open.length === 0 || open.at(-1) === LIST)
          found = { line, text: "{", depth: open.length }
        open.push(name)
      } else if (char === "[") {
        const is_list = isList([...open, name])
        if (is_list) found = undefined
        open.push(is_list ? LIST : name)
      } else if (char === "}" || char === "]") {
        open.pop()
        if (found?.depth !== open.length) continue
        yield found
        found = undefined
      }
    }
  }
  if (open.length === 0 && !in_text) return
  const message = `FILE: the JSON text ends in line ${line}, before its last object is closed.`
  throw new Failure(exits.invalid, "invalid_json", message, { hint: "export it once more" })
}

const LONGEST_NAME = 400

const LIST = Symbol("list")

/** An answer has its list as a field, or in the field of a field: `{"data": {"results": […]}}`. */
const isList = (names: readonly (string | typeof LIST)[]): boolean =>
  names.length <= 3 &&
  !names.includes(LIST) &&
  names.slice(1).every((one) => LISTS.test(String(one)))

export const INEXACT = "JSON cannot carry a number of the line exactly. Write it as a string."

interface ParsedObject {
  object?: Record<string, unknown>
  /** Why there is none. */
  refused: string
}

/**
 * A JSON object. It is refused where the text has an integer that a double does not hold, or a number beyond its bounds
 * (RFC 8259, section 6).
 */
export function parseObject(text: string): ParsedObject {
  if (text.length > LONGEST_RECORD)
    return { refused: `The line has more than ${LONGEST_RECORD} characters.` }
  let is_exact = true
  const look = (_name: string, value: unknown, { source = "" }: { source?: string }) => {
    if (typeof value !== "number") return value
    const is_integer = /^-?\d+$/.test(source)
    if (!Number.isFinite(value) || (is_integer && BigInt(source) !== BigInt(value)))
      is_exact = false
    return value
  }
  const refused = "The line is not a JSON object."
  try {
    const value: unknown = JSON.parse(text, look as (name: string, value: unknown) => unknown)
    if (!isObject(value)) return { refused }
    return is_exact ? { object: value, refused: "" } : { refused: INEXACT }
  } catch {
    return { refused }
  }
}
