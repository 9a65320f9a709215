import {
  bared,
  environment,
  escapeFor,
  type Handlebars,
  problemOf,
  type RenderMode,
  SafeString,
  Unfit,
} from "./handlebars"
import type { Rendered, RenderTask } from "./render"
import { requireShallow } from "./syntax"

const MOST_COMPILED = 64

type Template = (context: unknown, options: Handlebars.RuntimeOptions) => string

const HELPERS = { if: true, unless: true, each: true, with: true, lookup: true, log: false }

/** Only what `mode` names; partials and decorators do not exist at all. */
const environments: Record<RenderMode, typeof Handlebars> = {
  html: environment(),
  text: environment(),
  json: environment(),
}
environments.json.registerHelper("json", asJson)

/** `{{json x}}`: the value as JSON, with its quotes. */
function asJson(...given: unknown[]) {
  if (given.length !== 2) throw new Unfit("failed", "The helper json needs exactly one value.")
  return new SafeString(JSON.stringify(given[0]) ?? "null")
}

const compiled = new Map<string, Template>()

/** Runs in the worker: renders, or with no data only judges the source. Never throws. */
export function renderTemplate({ mode, source, data, max_bytes }: RenderTask): Rendered {
  escapeFor(mode)
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
  requireShallow(tree)
  requirePlain(tree)
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

function requirePlain(node: unknown) {
  if (typeof node !== "object" || node === null) return
  const { type, loc } = node as Partial<hbs.AST.Node>
  if (typeof type === "string" && REFUSED.test(type)) {
    throw new Unfit("syntax", "Partials and decorators are not available. Remove them.", loc)
  }
  for (const [name, value] of Object.entries(node)) if (name !== "loc") requirePlain(value)
}
