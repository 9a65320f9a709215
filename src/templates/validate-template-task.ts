import { environment, problemOf, type TemplateProblem } from "./handlebars"
import { VALUE_HELPERS } from "./handlebars-helpers"
import { parseText, TEXT, VALUE } from "./syntax"
import type { TemplateText } from "./template-sources"

export interface UsedPartial {
  name: string
  field: string
  line: number
  column: number
}

/** What the texts of a template use. */
export interface UsedNames {
  /** Names that the data has to give, sorted. */
  names: string[]
  partials: UsedPartial[]
  /** The fields that have a place for the text of another template. */
  content_fields: string[]
}

/** What is known of a template without data, or its first mistake. */
export type TemplateFacts =
  | { problem: TemplateProblem & { field: string; excerpt: string | null } }
  | UsedNames

const handlebars = environment()

/** Options of the compiler: no name means a helper but those of the contract. */
export const COMPILER = {
  knownHelpersOnly: true,
  knownHelpers: Object.fromEntries(
    ["if", "unless", "each", "with", VALUE, TEXT, ...VALUE_HELPERS].map((name) => [name, true]),
  ) as Record<string, boolean>,
}

/** What a layout puts the text of its template in place of. */
export const CONTENT = "content"

/** Runs in the worker: reads every text. Never throws. */
export function validateTemplate(texts: TemplateText[]): TemplateFacts {
  const names = new Set<string>()
  const partials: UsedPartial[] = []
  const content_fields: string[] = []
  for (const { field, source } of texts) {
    try {
      const { tree, facts } = parseText(source)
      handlebars.precompile(tree, COMPILER) // `compile` alone would wait for the first call
      for (const name of facts.names) names.add(name)
      if (facts.names.has(CONTENT)) content_fields.push(field)
      for (const [name, { start }] of facts.partials) {
        partials.push({ name, field, line: start.line, column: start.column + 1 })
      }
    } catch (error) {
      const problem = problemOf(error)
      const excerpt = excerptOf(source, problem.line, problem.column)
      return { problem: { ...problem, field, excerpt } }
    }
  }
  return { names: [...names].sort(), partials, content_fields }
}

const BEFORE = 60
const AFTER = 30

/** The place in its line, with a caret below it. */
function excerptOf(source: string, line: number | null, column: number | null) {
  if (line === null || column === null) return null
  const text = source.split("\n")[line - 1] ?? ""
  const begin = Math.max(0, column - 1 - BEFORE)
  const shown = text.slice(begin, column - 1 + AFTER).replaceAll(/[\p{Cc}]/gu, " ")
  return `${shown.toWellFormed()}\n${" ".repeat(column - 1 - begin)}^`
}
