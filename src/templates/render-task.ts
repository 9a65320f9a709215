import Handlebars from "handlebars"
import type { Rendered, RenderMode, RenderTask, TemplateProblem } from "./render"

const MOST_NODES_DEEP = 128
const MOST_COMPILED = 64

type Template = (context: unknown, options: Handlebars.RuntimeOptions) => string

/** A fault of the template itself, or of the template together with its data. */
class Unfit extends Error {
  readonly reason: TemplateProblem["reason"]
  readonly loc: hbs.AST.SourceLocation | undefined

  constructor(reason: TemplateProblem["reason"], message: string, loc?: hbs.AST.SourceLocation) {
    super(message)
    this.reason = reason
    this.loc = loc
  }
}

const { SafeString } = Handlebars
Handlebars.logger.log = () => {} // it would tell refused properties to the console

const HELPERS = { if: true, unless: true, each: true, with: true, lookup: true, log: false }

/** Only what `mode` names; partials and decorators do not exist at all. */
const environments: Record<RenderMode, typeof Handlebars> = {
  html: environment(),
  text: environment(),
  json: environment(),
}
environments.json.registerHelper("json", asJson)

function environment(): typeof Handlebars {
  const own = Handlebars.create()
  own.unregisterHelper("log")
  return own
}

const escapeHtml = Handlebars.Utils.escapeExpression

/** What `{{x}}` becomes. `{{{x}}}` is as it is in every mode. */
const escapes: Record<RenderMode, (value: unknown) => string> = {
  html: (value) => (value instanceof SafeString ? plain(value) : escapeHtml(plain(value))),
  text: plain,
  json: (value) =>
    value instanceof SafeString ? plain(value) : JSON.stringify(plain(value)).slice(1, -1),
}

function plain(value: unknown): string {
  if (value === null || value === undefined) return ""
  if (typeof value === "object" && !(value instanceof SafeString) && !Array.isArray(value)) {
    throw new Unfit("failed", "An object is not a text. Name one of its fields.")
  }
  return String(value)
}

/** `{{json x}}`: the value as JSON, with its quotes. */
function asJson(...given: unknown[]) {
  if (given.length !== 2) throw new Unfit("failed", "The helper json needs exactly one value.")
  return new SafeString(JSON.stringify(given[0]) ?? "null")
}

const compiled = new Map<string, Template>()

/** Runs in the worker: renders, or with no data only judges the source. Never throws. */
export function renderTemplate({ mode, source, data, max_bytes }: RenderTask): Rendered {
  // The escape is looked up when a template is called for the first time.
  Object.assign(Handlebars.Utils, { escapeExpression: escapes[mode] })
  try {
    const template = compile(mode, source)
    if (data === undefined) return { text: "" }
    const text = template(bared(JSON.parse(data)), {})
    if (text.length > max_bytes || Buffer.byteLength(text) > max_bytes) {
      throw new Unfit("too_large", `The result is larger than ${max_bytes} bytes.`)
    }
    return { text }
  } catch (error) {
    return { problem: problemOf(error) }
  }
}

function compile(mode: RenderMode, source: string): Template {
  // An object would be taken for a syntax tree, and a forged tree is code.
  if (typeof source !== "string") throw new Unfit("syntax", "A template must be a text.")
  const key = `${mode} ${source}`
  const known = compiled.get(key)
  if (known) {
    compiled.delete(key) // and set again: the least used one is always the first
    compiled.set(key, known)
    return known
  }
  const own = environments[mode]
  const tree = own.parse(source)
  demandPlain(tree, 0)
  const options = { strict: true, knownHelpersOnly: true, knownHelpers: knownHelpers(mode) }
  own.precompile(tree, options) // `compile` alone waits for the first call to find mistakes
  const template: Template = own.compile(tree, options)
  compiled.set(key, template)
  const [oldest] = compiled.keys()
  if (compiled.size > MOST_COMPILED && oldest !== undefined) compiled.delete(oldest)
  return template
}

const knownHelpers = (mode: RenderMode) => (mode === "json" ? { ...HELPERS, json: true } : HELPERS)

const REFUSED = /^(Partial|Decorator)/

/** Handlebars works by recursion, so depth is bounded before it begins. */
function demandPlain(node: unknown, depth: number) {
  if (typeof node !== "object" || node === null) return
  const { type, loc } = node as Partial<hbs.AST.Node>
  if (depth > MOST_NODES_DEEP) throw new Unfit("syntax", "The template is nested too deeply.", loc)
  if (typeof type === "string" && REFUSED.test(type)) {
    throw new Unfit("syntax", "Partials and decorators are not available. Remove them.", loc)
  }
  const inner = typeof type === "string" ? depth + 1 : depth
  for (const [name, value] of Object.entries(node)) if (name !== "loc") demandPlain(value, inner)
}

/** Has no member with a name; handlebars puts objects into the messages of its errors. */
const nameless = Object.create(null, {
  [Symbol.toPrimitive]: { value: () => "an object" },
}) as object

/** Objects that inherit nothing a template could name: then there is only data to be found. */
function bared(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(bared)
  const bare: Record<string, unknown> = Object.create(nameless)
  for (const [name, inner] of Object.entries(value)) bare[name] = bared(inner)
  return bare
}

function problemOf(error: unknown): TemplateProblem {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof Unfit) {
    const { reason, loc } = error
    return { reason, message, ...placeOf(loc?.start.line, loc?.start.column) }
  }
  const { lineNumber, column } = error as { lineNumber?: unknown; column?: unknown }
  const place = placeOf(lineNumber, column)
  const missing = /^"(.+)" not defined/.exec(message)?.[1]
  if (missing) return { reason: "missing", message: `"${missing}" is not defined.`, ...place }
  const parse = /^(?:Parse|Lexical) error on line (\d+)/.exec(message)
  if (parse) {
    return { reason: "syntax", message: readable(message), line: Number(parse[1]), column: null }
  }
  const reason = /unknown helper|doesn't match|Invalid path/.test(message) ? "syntax" : "failed"
  return { reason, message: message.replace(/ - \d+:\d+$/, "."), ...place }
}

/** Columns count from 1 here, as editors show them. The runtime gives every error a column. */
const placeOf = (line: unknown, column: unknown) => ({
  line: typeof line === "number" ? line : null,
  column: typeof line === "number" && typeof column === "number" ? column + 1 : null,
})

/** The parser's message shows the text with an arrow below. One line is enough here. */
const readable = (message: string) =>
  message.replace(/:\n[^\n]*\n[^\n]*\n?/, ": ").replaceAll("\n", " ")
