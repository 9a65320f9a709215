export type Qualifier = "+" | "-" | "~" | "?"

export interface SpfTerm {
  /** As it is written. */
  text: string
  /** `+` where none is written. */
  qualifier: Qualifier
  /** Lower case: `include`, `a`, `all`, `redirect` … */
  name: string
  /** What follows the colon, equals sign or slash, without that sign; empty without any. */
  value: string
  is_modifier: boolean
  /** What is wrong with it, in words. */
  fault: string | null
}

const MECHANISMS = ["all", "include", "a", "mx", "ptr", "ip4", "ip6", "exists"]
const NEEDS_VALUE = ["include", "ip4", "ip6", "exists"]
const LOOKUPS = ["include", "a", "mx", "ptr", "exists", "redirect"]

/** Whether a text is an SPF record at all (RFC 7208 4.5): the version, then a space or the end. */
export const isSpf = (text: string) => /^v=spf1(?: |$)/i.test(text)

/** Whether evaluating the term asks DNS, which a receiver does ten times (RFC 7208 4.6.4). */
export const asksDns = ({ name }: SpfTerm) => LOOKUPS.includes(name)

/** The terms of a record, in order, each with what is wrong with it. RFC 7208 4.6.1 and 12. */
export const parseSpf = (text: string): SpfTerm[] =>
  text
    .trim()
    .split(/ +/)
    .slice(1)
    .map((term) => readTerm(term))

function readTerm(text: string): SpfTerm {
  const modifier = /^([a-z][a-z0-9_.-]*)=(.*)$/i.exec(text)
  if (modifier) {
    const name = (modifier[1] ?? "").toLowerCase()
    const fault = MECHANISMS.includes(name)
      ? `"${name}" is followed by a colon, not by an equals sign`
      : null
    return { text, qualifier: "+", name, value: modifier[2] ?? "", is_modifier: true, fault }
  }
  const found = /^([+\-~?]?)([a-z0-9]+)(?:([:/])(.*))?$/i.exec(text)
  const name = (found?.[2] ?? text).toLowerCase()
  const written = found?.[4] ?? ""
  const value = found?.[3] === "/" ? `/${written}` : written
  const qualifier = ((found?.[1] || "+") as Qualifier) ?? "+"
  const term = { text, qualifier, name, value, is_modifier: false }
  return { ...term, fault: found ? faultOf(name, value) : `"${text}" cannot be read` }
}

function faultOf(name: string, value: string): string | null {
  if (!MECHANISMS.includes(name)) return `there is no mechanism "${name}"`
  if (NEEDS_VALUE.includes(name) && value === "") return `"${name}" needs a value after a colon`
  if (name === "all" && value !== "") return '"all" takes no value'
  if (name === "ip4" && !/^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(value)) {
    return `"${value}" is no IPv4 address or network`
  }
  if (name === "ip6" && !/^[0-9a-f:.]+(\/\d{1,3})?$/i.test(value)) {
    return `"${value}" is no IPv6 address or network`
  }
  return null
}

/** Whether a term says the same as a mechanism we ask for, whatever its qualifier. */
export function isSameMechanism(term: SpfTerm, wanted: string): boolean {
  const other = readTerm(wanted)
  const bare = (value: string) => value.toLowerCase().replace(/\.$/, "")
  return !term.is_modifier && term.name === other.name && bare(term.value) === bare(other.value)
}
