import { problemOf, Unfit } from "../../../templates/handlebars"
import { treeOf } from "../../../templates/syntax"

const NAMES = ["id", "to", "from", "text", "callback_url", "ucs2"] as const

/**
 * What a request to a gateway is filled with; an empty text where there is no value. `ucs2` has one where the text
 * does not fit into GSM-7: many gateways must be told.
 */
export type TextValues = Record<(typeof NAMES)[number], string>

export type Fill = (values: TextValues) => string

/** Makes a value fit for the place where it stands. */
export type Escape = (value: string) => string

/**
 * A text with placeholders, read once. It knows `{{name}}`, which escapes the value, `{{{name}}}`, which does not,
 * and `{{#if name}}` and `{{#unless name}}`. Nothing is compiled and nothing can loop, so it is safe outside of a
 * worker. Throws an error with a message for people.
 */
export function fillable(source: string, escaped: Escape, raw: Escape = plain): Fill {
  try {
    return all(treeOf(source).body, { escaped, raw })
  } catch (error) {
    throw new Error(problemOf(error).message)
  }
}

const plain: Escape = (value) => value

type Escapes = Record<"escaped" | "raw", Escape>

function all(statements: hbs.AST.Statement[], escapes: Escapes): Fill {
  const fills = statements.map((statement) => fillOf(statement, escapes))
  return (values) => fills.map((fill) => fill(values)).join("")
}

function fillOf(node: hbs.AST.Statement, escapes: Escapes): Fill {
  if (node.type === "ContentStatement") {
    const { value } = node as hbs.AST.ContentStatement
    return () => value
  }
  if (node.type === "CommentStatement") return () => ""
  if (node.type === "MustacheStatement") {
    const { path, params, hash, escaped, loc } = node as hbs.AST.MustacheStatement
    if (params.length > 0 || hash?.pairs?.length) throw new Unfit("syntax", NO_HELPERS, loc)
    const name = nameOf(path)
    const fit = escaped ? escapes.escaped : escapes.raw
    return (values) => fit(values[name])
  }
  if (node.type === "BlockStatement") return blockOf(node as hbs.AST.BlockStatement, escapes)
  throw new Unfit("syntax", NO_HELPERS, node.loc)
}

function blockOf(node: hbs.AST.BlockStatement, escapes: Escapes): Fill {
  const { path, params, program, inverse, loc } = node
  const [condition] = params
  const is_if = path.original === "if"
  if ((!is_if && path.original !== "unless") || !condition || params.length > 1) {
    throw new Unfit("syntax", NO_HELPERS, loc)
  }
  const name = nameOf(condition)
  const first = all(program?.body ?? [], escapes)
  const other = all(inverse?.body ?? [], escapes)
  return (values) => ((values[name] !== "") === is_if ? first(values) : other(values))
}

function nameOf(node: hbs.AST.Node): keyof TextValues {
  const { original } = node as Partial<hbs.AST.PathExpression>
  const name = NAMES.find((one) => node.type === "PathExpression" && one === original)
  if (name) return name
  throw new Unfit("syntax", `There is no {{${String(original)}}}. ${KNOWN}`, node.loc)
}

const KNOWN = `The names are ${NAMES.join(", ")}.`
const NO_HELPERS = `Write only {{name}}, {{{name}}}, {{#if name}} and {{#unless name}}. ${KNOWN}`
