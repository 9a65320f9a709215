import {
  bared,
  environment,
  escapeFor,
  type Handlebars,
  plain,
  problemOf,
  SafeString,
  Unfit,
} from "./handlebars"
import { OUTPUT_BYTES } from "./limits"
import { printAsText, requireShallow, TEXT } from "./syntax"
import type { Transformed, TransformTask } from "./transform"

const MOST_COMPILED = 64

/** Only these; partials and decorators do not exist at all. */
const HELPERS = { if: true, unless: true, each: true, with: true, lookup: true, json: true }
const KNOWN: Record<string, boolean> = { ...HELPERS, [TEXT]: true, log: false }

const handlebars = environment()
handlebars.registerHelper("json", asJson)
handlebars.registerHelper(TEXT, (value: unknown) => plain(value))

/** `{{json x}}`: the value as JSON, with its quotes. */
function asJson(...given: unknown[]) {
  if (given.length !== 2) throw new Unfit("failed", "The helper json needs exactly one value.")
  return new SafeString(JSON.stringify(given[0]) ?? "null")
}

const compiled = new Map<string, Handlebars.TemplateDelegate>()

/** Runs in the worker: renders, or with no data only compiles the source. Never throws. */
export function transformInThread({ source, data }: TransformTask): Transformed {
  escapeFor("json")
  try {
    const template = compile(source)
    if (data === undefined) return { text: "" }
    const text = template(bared(JSON.parse(data)), {})
    if (Buffer.byteLength(text) > OUTPUT_BYTES) {
      throw new Unfit("too_large", `The result is larger than ${OUTPUT_BYTES} bytes.`)
    }
    return { text }
  } catch (error) {
    return { problem: problemOf(error) }
  }
}

function compile(source: string): Handlebars.TemplateDelegate {
  // An object would be taken for a syntax tree, and a forged tree is code.
  if (typeof source !== "string") throw new Unfit("syntax", "A template must be a text.")
  const known = compiled.get(source)
  if (known) {
    compiled.delete(source) // and set again: the least used one is always the first
    compiled.set(source, known)
    return known
  }
  const tree = handlebars.parse(source)
  requireShallow(tree)
  settle(tree)
  const options = { strict: true, knownHelpersOnly: true, knownHelpers: KNOWN }
  handlebars.precompile(tree, options) // `compile` alone waits for the first call to find mistakes
  const template = handlebars.compile(tree, options)
  compiled.set(source, template)
  const [oldest] = compiled.keys()
  if (compiled.size > MOST_COMPILED && oldest !== undefined) compiled.delete(oldest)
  return template
}

const REFUSED = /^(Partial|Decorator)/

/** Refuses partials and decorators, and makes each `{{{x}}}` print a text. */
function settle(node: unknown) {
  if (typeof node !== "object" || node === null) return
  const { type, loc } = node as Partial<hbs.AST.Node>
  if (typeof type === "string" && REFUSED.test(type)) {
    throw new Unfit("syntax", "Partials and decorators are not available. Remove them.", loc)
  }
  for (const [name, value] of Object.entries(node)) if (name !== "loc") settle(value)
  if (type === "MustacheStatement") printed(node as hbs.AST.MustacheStatement)
}

function printed(node: hbs.AST.MustacheStatement) {
  const { escaped, params } = node
  if (escaped) return
  const path = node.path as hbs.AST.PathExpression
  const is_helper = path.parts.length === 1 && KNOWN[path.original] === true
  // As of a name that is printed at once, a missing value is a mistake.
  Object.assign(path, { strict: true })
  printAsText(node, params.length > 0 || is_helper)
}
