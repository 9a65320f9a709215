import { nearest } from "../lib/nearest"
import { keyNames, variableOf } from "./config-keys"

const MOST_MEMBERS = 8

/** What a key that does not exist was probably meant to be: `did you mean log.level?`. */
export const guessKey = (name: string): string => guess(name, keyNames, ".")

/** The same for a variable of the environment: the prefix that all have in common counts nothing. */
export function guessVariable(name: string): string {
  const bare = (variable: string) => variable.replace(/^BELFRY_/, "")
  const whole = new Map(keyNames.map(variableOf).map((variable) => [bare(variable), variable]))
  return guess(bare(name), [...whole.keys()], "_", (one) => whole.get(one) ?? one)
}

/** The name with the fewest typing errors away; else the members of the section that is near. */
function guess(
  name: string,
  among: readonly string[],
  separator: string,
  shown = (one: string) => one,
): string {
  const best = nearest(name, among)
  if (best?.is_near) return `did you mean ${shown(best.text)}?`

  const sectionOf = (text: string) => text.split(separator, 1)[0] ?? ""
  const in_sections = among.filter((one) => one.includes(separator))
  const section = nearest(sectionOf(name), in_sections.map(sectionOf))
  if (!section?.is_near) return `the nearest is ${shown(best?.text ?? "")}`
  const members = in_sections.filter((one) => sectionOf(one) === section.text)
  return `did you mean ${members.slice(0, MOST_MEMBERS).map(shown).join(", ")}?`
}
