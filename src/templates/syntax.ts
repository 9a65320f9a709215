import { Handlebars, Unfit } from "./handlebars"
import { BLOCKS, VALUE_HELPERS } from "./handlebars-helpers"
import { TEMPLATE_NAME } from "./limits"

const MOST_NODES_DEEP = 128

/** The helper that each value goes through, so that a missing one is noticed. No author can write it. */
export const VALUE = "§"

/** The helper that each `{{{x}}}` goes through. */
export const TEXT = "§text"

/**
 * Makes `{{{x}}}` print a text. Handlebars joins what is printed by `+`, which adds up numbers that stand
 * side by side.
 */
export function printAsText(node: hbs.AST.MustacheStatement, is_call: boolean): void {
  const { path, params, hash, loc } = node
  const printed = is_call ? { type: "SubExpression", path, params, hash, loc } : path
  const none = undefined as unknown as hbs.AST.Hash
  Object.assign(node, { path: pathTo(TEXT, loc), params: [printed], hash: none })
}

const pathTo = (name: string, loc: hbs.AST.SourceLocation) => ({
  ...{ type: "PathExpression", data: false, depth: 0, parts: [name], original: name, loc },
})

/** What the syntax tree of a text says. */
interface TextFacts {
  /** Names that the data has to give, as they are written. */
  names: Set<string>
  partials: Map<string, hbs.AST.SourceLocation>
}

/** Where a name is looked up: below the data itself, or below an item of a list. */
interface Scope {
  /** How many contexts lie between here and the data. */
  depth: number
  /** Of the context, in messages: `items[]`. */
  path: string
  /** Names that `as |item|` gives. */
  locals: readonly string[]
}

const ROOT: Scope = { depth: 0, path: "", locals: [] }

/** Throws where the tree is nested too deeply: what walks through it works by recursion. */
export function requireShallow(node: unknown, depth = 0): void {
  if (typeof node !== "object" || node === null) return
  const { type, loc } = node as Partial<hbs.AST.Node>
  if (depth > MOST_NODES_DEEP) throw new Unfit("syntax", "The template is nested too deeply.", loc)
  const inner = typeof type === "string" ? depth + 1 : depth
  for (const [name, value] of Object.entries(node)) if (name !== "loc") requireShallow(value, inner)
}

/**
 * Which names go through the helper `VALUE`. `exact`: each whose value is printed or computed with. `quick`: not
 * those that `{{x}}` prints, because the call costs more than the printing, and the escape sees their values.
 */
export type Noticing = "exact" | "quick"

/**
 * Parses a text, and refuses what templates may not use (contract 23). In the tree, names go through the
 * helper `VALUE`. Throws `Unfit`, or what the parser throws.
 */
export function parseText(
  source: string,
  noticing: Noticing = "exact",
): { tree: hbs.AST.Program; facts: TextFacts } {
  const tree = treeOf(source)
  const facts: TextFacts = { names: new Set(), partials: new Map() }
  new Walk(facts, noticing).program(tree, ROOT)
  return { tree, facts }
}

/** The syntax tree of a text, as it was written. Throws `Unfit`, or what the parser throws. */
export function treeOf(source: string): hbs.AST.Program {
  // An object would be taken for a syntax tree, and a forged tree is code.
  if (typeof source !== "string") throw new Unfit("syntax", "A template must be a text.")
  refuseDeepBlocks(source)
  const tree = Handlebars.parse(source)
  requireShallow(tree)
  return tree
}

/** `{{^}}` begins nothing: it is `{{else}}`. */
const BLOCK_TAG = /\{\{\{?\{?~?\s*(#|\^(?!\s*~?\}\})|\/)/g

/** Before the parser, whose time grows with the square of the depth. */
function refuseDeepBlocks(source: string): void {
  let depth = 0
  for (const [, sign] of source.matchAll(BLOCK_TAG)) {
    depth += sign === "/" ? -1 : 1
    if (depth > MOST_NODES_DEEP) throw new Unfit("syntax", "The template is nested too deeply.")
  }
}

class Walk {
  readonly #facts: TextFacts
  readonly #noticing: Noticing

  constructor(facts: TextFacts, noticing: Noticing) {
    this.#facts = facts
    this.#noticing = noticing
  }

  program({ body }: hbs.AST.Program, scope: Scope): void {
    for (const statement of body) this.#statement(statement, scope)
  }

  #statement(node: hbs.AST.Statement, scope: Scope): void {
    if (node.type === "ContentStatement" || node.type === "CommentStatement") return
    if (node.type === "MustacheStatement") this.#mustache(node as hbs.AST.MustacheStatement, scope)
    else if (node.type === "BlockStatement") this.#block(node as hbs.AST.BlockStatement, scope)
    else if (node.type === "PartialStatement")
      this.#partial(node as hbs.AST.PartialStatement, scope)
    else throw new Unfit("syntax", NO_INLINE, node.loc)
  }

  #mustache(node: hbs.AST.MustacheStatement, scope: Scope): void {
    const { path, params, hash, escaped, loc } = node
    if (path.type !== "PathExpression") throw new Unfit("syntax", NO_LITERAL, loc)
    const target = path as hbs.AST.PathExpression
    if (params.length === 0 && !hash?.pairs?.length) {
      if (this.#noticing === "quick" && escaped && !isCalledAsHelper(target)) {
        this.#note(target, scope)
        return
      }
      const value = this.#value(target, scope)
      const is_call = value.type === "SubExpression"
      if (is_call) {
        node.path = (value as hbs.AST.SubExpression).path
        node.params = (value as hbs.AST.SubExpression).params
      }
      if (!escaped) printAsText(node, is_call)
      return
    }
    requireHelper(target)
    this.#arguments(node, scope, false)
    if (!escaped) printAsText(node, true)
  }

  #block(node: hbs.AST.BlockStatement, scope: Scope): void {
    const { path, params, program, inverse, loc } = node
    const name = path.original
    if (!isPlain(path) || !BLOCKS.has(name)) throw new Unfit("syntax", noBlock(name), loc)
    const [condition] = params
    if (!condition || params.length > 1) {
      throw new Unfit("syntax", `{{#${name}}} needs exactly one value.`, loc)
    }
    this.#arguments(node, scope, true)
    const inner = name === "each" || name === "with" ? below(node, scope) : scope
    // Of `{{^if x}}` without an else there is the inverse alone.
    if (program) this.program(program, inner)
    if (inverse) this.program(inverse, scope)
  }

  #partial(node: hbs.AST.PartialStatement, scope: Scope): void {
    const { name, params, loc } = node
    const written = name as hbs.AST.PathExpression
    if (written.type !== "PathExpression" || !PARTIAL_NAME.test(written.original)) {
      throw new Unfit("syntax", NO_PARTIAL_NAME, loc)
    }
    if (params.length > 1) throw new Unfit("syntax", "A partial takes at most one value.", loc)
    this.#facts.partials.set(written.original, loc)
    this.#arguments(node, scope, false)
  }

  /** Within a condition a missing value is no mistake, and neither is one that has another beside it. */
  #arguments(
    node: Pick<hbs.AST.SubExpression, "params" | "hash"> & { path?: hbs.AST.Expression },
    scope: Scope,
    is_soft: boolean,
  ): void {
    const name = (node.path as hbs.AST.PathExpression | undefined)?.original
    const last = node.params.length - 1
    node.params = node.params.map((param, at) => {
      const has_other = (name === "default" || name === "or") && at < last
      return this.#argument(param, scope, is_soft || has_other)
    })
    for (const pair of node.hash?.pairs ?? []) {
      pair.value = this.#argument(pair.value, scope, is_soft)
    }
  }

  #argument(node: hbs.AST.Expression, scope: Scope, is_soft: boolean): hbs.AST.Expression {
    if (node.type === "PathExpression") {
      const path = node as hbs.AST.PathExpression
      if (!is_soft) return this.#value(path, scope)
      this.#note(path, scope)
      return path
    }
    if (node.type === "SubExpression") {
      const call = node as hbs.AST.SubExpression
      requireHelper(call.path as hbs.AST.PathExpression)
      this.#arguments(call, scope, is_soft)
    }
    return node
  }

  /** The same name inside a call that notices when there is no value. */
  #value(path: hbs.AST.PathExpression, scope: Scope): hbs.AST.Expression {
    const name = this.#note(path, scope)
    if (name === undefined) return path
    const { loc } = path
    const text = (value: string) => ({ type: "StringLiteral", value, original: value, loc })
    const place = `${loc.start.line}:${loc.start.column + 1}`
    return {
      type: "SubExpression",
      path: pathTo(VALUE, loc),
      params: [path, text(name), text(place)],
      hash: undefined,
      loc,
    } as unknown as hbs.AST.SubExpression
  }

  /** How the value is called in messages; undefined for what is always there. */
  #note(path: hbs.AST.PathExpression, scope: Scope): string | undefined {
    const { data, depth, original } = path
    const parts = path.parts as string[]
    if (data) {
      const [word = ""] = parts
      if (word === "root") return parts.length > 1 ? this.#add(parts.slice(1)) : undefined
      if (!DATA.has(word)) throw new Unfit("syntax", `There is no @${word}.`, path.loc)
      return undefined
    }
    if (parts.length === 0) return undefined // {{this}}
    if (depth > scope.depth)
      throw new Unfit("syntax", `${original} leads out of the data.`, path.loc)
    const [first = ""] = parts
    const is_scoped = /^(\.|this\b)/.test(original)
    if (depth === 0 && !is_scoped && scope.locals.includes(first)) return original
    if (depth === scope.depth) return this.#add(parts)
    return depth === 0 && scope.path !== "" ? `${scope.path}.${parts.join(".")}` : original
  }

  #add(parts: string[]): string {
    const name = parts.join(".")
    this.#facts.names.add(name)
    return name
  }
}

/** Of the items of a list, or of the value of `with`. */
function below({ path, params, program }: hbs.AST.BlockStatement, scope: Scope): Scope {
  const [value] = params
  const name = value?.type === "PathExpression" ? (value as hbs.AST.PathExpression).original : ""
  const own = path.original === "each" && name !== "" ? `${name}[]` : name
  const outer = scope.path !== "" && own !== "" && !own.startsWith("..") ? `${scope.path}.` : ""
  return {
    depth: scope.depth + 1,
    path: own === "" ? "" : outer + own,
    locals: [...scope.locals, ...(program?.blockParams ?? [])],
  }
}

const isPlain = ({ type, data, depth, parts }: hbs.AST.PathExpression) =>
  type === "PathExpression" && !data && depth === 0 && parts.length === 1

/** Without arguments such a name is a variable; Handlebars would call the helper. */
const isCalledAsHelper = (path: hbs.AST.PathExpression) =>
  isPlain(path) && (VALUE_HELPERS.has(path.original) || BLOCKS.has(path.original))

function requireHelper(path: hbs.AST.PathExpression): void {
  const { original, loc } = path
  if (isPlain(path) && VALUE_HELPERS.has(original)) return
  if (BLOCKS.has(original)) {
    throw new Unfit("syntax", `${original} is a block: {{#${original} x}}…{{/${original}}}.`, loc)
  }
  throw new Unfit("syntax", `There is no helper "${original}". ${HELPER_LIST}`, loc)
}

function noBlock(name: string): string {
  if (VALUE_HELPERS.has(name)) return `${name} is no block. Write {{#if (${name} …)}}.`
  return `There is no block "${name}". Use {{#if}}, {{#unless}}, {{#each}} or {{#with}}.`
}

const HELPER_LIST = `The helpers are ${[...BLOCKS, ...VALUE_HELPERS].join(", ")}.`

const DATA = new Set(["index", "key", "first", "last"])

const PARTIAL_NAME = new RegExp(TEMPLATE_NAME)
const NO_PARTIAL_NAME = "A partial is the name of a template: {{> footer}}."
const NO_INLINE = "Inline partials and decorators are not available. Use {{> name}}."
const NO_LITERAL = "A name is missing here."
