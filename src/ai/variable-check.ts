import { nearest } from "../lib/text"
import { VALUE_HELPERS } from "../templates/handlebars-helpers"
import type { VariablesFound } from "./ai-task"

const MOST_NAMES = 200
/** To find what was meant costs something. */
const MOST_CORRECTED = 20

/**
 * Corrects the names in texts of a model that are almost known ones, and tells which are unknown. `make` has
 * each text changed by `fix`, and returns the names that the data has to give. It runs twice where one is wrong.
 */
export async function withKnownVariables<Made extends { names: string[] }>(
  known: string[],
  make: (fix: (text: string) => string) => Promise<Made>,
): Promise<{ made: Made; variables: VariablesFound }> {
  const first = await make((text) => text)
  const wrong = unknownOf(first.names, known).slice(0, MOST_CORRECTED)
  const meant = new Map(wrong.flatMap((from) => meantBy(from, known)))
  const made = meant.size === 0 ? first : await make((text) => corrected(text, meant))
  const done = [...meant].filter(([from]) => !made.names.includes(from))
  const variables = {
    detected: made.names.slice(0, MOST_NAMES),
    corrected: done.map(([from, to]) => ({ from, to })),
    unknown: unknownOf(made.names, known),
  }
  return { made, variables }
}

/** A part of what is known is known, too, and so is what has a known part. */
const unknownOf = (names: string[], known: string[]): string[] =>
  names.slice(0, MOST_NAMES).filter((name) => {
    const isSame = (one: string) => `${one}.`.startsWith(`${name}.`) || name.startsWith(`${one}.`)
    return !known.some(isSame)
  })

/** The name and the known one. A name with another number means another value, and a helper is not replaced. */
function meantBy(name: string, known: string[]): [string, string][] {
  if (VALUE_HELPERS.has(name)) return []
  const found = known.find((one) => plain(one) === plain(name)) ?? nearest(name, known)
  return found !== undefined && digits(found) === digits(name) ? [[name, found]] : []
}

/** `firstName` means `first_name`. */
const plain = (name: string) => name.replace(/[-_]/g, "").toLowerCase()
const digits = (name: string) => name.replace(/\D/g, "")

/** A value, a block or a remark of Handlebars. */
export const TAG = /\{\{[^{}]*\}\}/g
/** A text in quotes, or a name. With `=` behind it the name is that of an option of a helper. */
const WORD = /"[^"]*"|'[^']*'|([\p{L}\p{N}_$.@/-]+)(\s*=)?/gu

const BLOCK = /^\{\{~?\s*(?:(#|\^(?=\s*\w))|(\/)|(else\b|\^))?\s*(\w*)/

/** Within `each` and `with` a name is that of an item, but for one that leads out with `../` or `@root`. */
function corrected(text: string, meant: Map<string, string>): string {
  /** Of each open block, whether it is one of those. */
  const open: boolean[] = []
  return text.replace(TAG, (tag) => {
    const [, opens, closes, turns, word = ""] = BLOCK.exec(tag) ?? []
    if (closes ?? turns) open.pop()
    const out = "../".repeat(open.filter(Boolean).length)
    const roots = ["@root.", ...(out ? [out] : ["this.", ""])]
    if (opens ?? turns) open.push(opens !== "^" && /^(each|with)$/.test(word))
    return tag.replace(WORD, (whole, name = "", option = "") => {
      const root = roots.find((one) => name.startsWith(one))
      const known = root !== undefined && option === "" && meant.get(name.slice(root.length))
      return known ? root + known : whole
    })
  })
}
