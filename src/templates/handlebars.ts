import Handlebars from "handlebars"

export { Handlebars }

/** Values that an author declared as ready for the output: they are escaped no more. */
export const { SafeString } = Handlebars
Handlebars.logger.log = () => {} // it would tell refused properties to the console

/**
 * What `{{x}}` is escaped for: HTML, nothing, or the inside of a JSON string. In `json` there is
 * also `{{json x}}`, which writes any value as JSON.
 */
type RenderMode = "html" | "text" | "json"

export interface TemplateProblem {
  /** `missing`: a name without a value; `failed`: anything else that happened while rendering. */
  reason: "syntax" | "missing" | "too_large" | "timeout" | "failed"
  /** For people, without the source around it. */
  message: string
  /** Where it is in the source, both from 1, where that is known. */
  line: number | null
  column: number | null
}

/** A fault of the template itself, or of the template together with its data. */
export class Unfit extends Error {
  readonly reason: TemplateProblem["reason"]
  readonly loc: hbs.AST.SourceLocation | undefined

  constructor(reason: TemplateProblem["reason"], message: string, loc?: hbs.AST.SourceLocation) {
    super(message)
    this.reason = reason
    this.loc = loc
  }
}

/** A copy of Handlebars of its own: without `log`. Decorators and partials exist only where given. */
export function environment(): typeof Handlebars {
  const own = Handlebars.create()
  own.unregisterHelper("log")
  return own
}

const escapeHtml = Handlebars.Utils.escapeExpression

let has_gap = false

/** Does the work, and says whether a `{{x}}` in it printed a value that is not there. */
export function noticingGaps<Made>(work: () => Made): { made: Made; has_gap: boolean } {
  has_gap = false
  const made = work()
  return { made, has_gap }
}

/** What `{{x}}` becomes. `{{{x}}}` is as it is in every mode. */
const escapes: Record<RenderMode, (value: unknown) => string> = {
  html: (value) =>
    typeof value === "object" && value instanceof SafeString
      ? plain(value)
      : escapeHtml(printed(value)),
  text: printed,
  json: (value) =>
    value instanceof SafeString ? plain(value) : JSON.stringify(printed(value)).slice(1, -1),
}

function printed(value: unknown): string {
  if (typeof value === "string") return value
  if (value === undefined) has_gap = true
  return plain(value)
}

/** The escape is looked up when a template is called for the first time. */
export const escapeFor = (mode: RenderMode) =>
  Object.assign(Handlebars.Utils, { escapeExpression: escapes[mode] })

export function plain(value: unknown): string {
  if (value === null || value === undefined) return ""
  if (typeof value === "object" && !(value instanceof SafeString) && !Array.isArray(value)) {
    throw new Unfit("failed", "An object is not a text. Name one of its fields.")
  }
  return String(value)
}

/** Has no member with a name; handlebars puts objects into the messages of its errors. */
const nameless = Object.create(null, {
  [Symbol.toPrimitive]: { value: () => "an object" },
}) as object

/** Objects that inherit nothing a template could name: then there is only data to be found. */
export function bared(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(bared)
  const data = value as Record<string, unknown>
  const bare = bareObject()
  for (const name in data) bare[name] = bared(data[name])
  return bare
}

export const bareObject = (): Record<string, unknown> => Object.create(nameless)

/** What went wrong, for people. Columns count from 1, as editors show them. */
export function problemOf(error: unknown): TemplateProblem {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof RangeError && /call stack/i.test(message)) return problemOf(tooDeep())
  if (error instanceof Unfit) {
    const { reason, loc } = error
    return { reason, message, ...placeOf(loc?.start.line, loc?.start.column) }
  }
  const { lineNumber, column } = error as { lineNumber?: unknown; column?: unknown }
  const place = placeOf(lineNumber, column)
  const missing = /^"(.+)" not defined/.exec(message)?.[1]
  if (missing) return { reason: "missing", message: `"${missing}" is not defined.`, ...place }
  if (/^(?:Parse|Lexical) error on line \d+/.test(message)) {
    return { reason: "syntax", message: readable(message), ...parserPlace(message) }
  }
  const reason = /unknown helper|doesn't match|Invalid path/.test(message) ? "syntax" : "failed"
  return { reason, message: message.replace(/ - \d+:\d+$/, "."), ...place }
}

const tooDeep = () => new Unfit("syntax", "The template is nested too deeply.")

const placeOf = (line: unknown, column: unknown) => ({
  line: typeof line === "number" ? line : null,
  column: typeof line === "number" && typeof column === "number" ? column + 1 : null,
})

interface ParserState {
  lexer?: { yylloc?: { first_line?: unknown; first_column?: unknown } }
}

/** The parser's message has the line alone; its lexer stands where it gave up. */
function parserPlace(message: string) {
  const line = Number(/on line (\d+)/.exec(message)?.[1])
  const { Parser } = Handlebars as unknown as { Parser?: ParserState }
  const { first_line, first_column } = Parser?.lexer?.yylloc ?? {}
  return placeOf(line, first_line === line ? first_column : undefined)
}

/** The parser's message shows the text with an arrow below, and names its tokens. */
function readable(message: string): string {
  const got = /got '(\w+)'$/.exec(message)?.[1]
  const words = got && UNEXPECTED[got]
  return words ?? message.replace(/:\n[^\n]*\n[^\n]*\n?/, ": ").replaceAll("\n", " ")
}

/** By the token that the parser did not expect. */
const UNEXPECTED: Record<string, string> = {
  EOF: "The text ends here, but a block or an expression is still open.",
  INVALID: "This character is not allowed here.",
  INVERSE: "{{else}} is outside of a block.",
  OPEN_INVERSE_CHAIN:
    "{{else if}} has no place here. A block that begins with {{^ has {{else}} alone.",
  OPEN_ENDBLOCK: "This closes a block that is not open.",
  CLOSE: "The expression ends here, but something is missing in it.",
  CLOSE_UNESCAPED: "The expression ends with }}}, but it does not begin with {{{.",
  CLOSE_SEXPR: "This bracket closes nothing.",
}
