import { isAddress } from "./ip-ranges"

type Qualifier = "+" | "-" | "~" | "?"

export interface SpfTerm {
  /** As it is written. */
  text: string
  /** `+` where the term has none. */
  qualifier: Qualifier
  /** Lower case: `include`, `a`, `all`, `redirect` … */
  name: string
  /** What follows the colon, equals sign or slash, without that sign; empty without any. */
  value: string
  is_modifier: boolean
  /** What is wrong with it, in words: then receivers use nothing of the record. */
  fault: string | null
}

const MECHANISMS = ["all", "include", "a", "mx", "ptr", "ip4", "ip6", "exists"]
const NEEDS_VALUE = ["include", "ip4", "ip6", "exists"]
const LOOKUPS = ["include", "a", "mx", "ptr", "exists", "redirect"]
const ONCE = ["redirect", "exp"]

/** Whether a text is an SPF record at all (RFC 7208 4.5): the version, then a space or the end. */
export const isSpf = (text: string) => /^v=spf1(?: |$)/i.test(text)

/** Whether evaluating the term asks DNS, which a receiver does ten times (RFC 7208 4.6.4). */
export const asksDns = ({ name }: SpfTerm) => LOOKUPS.includes(name)

/** The terms of a record, in order, each with what is wrong with it. RFC 7208 4.6.1, 6 and 12. */
export function parseSpf(text: string): SpfTerm[] {
  const terms = text.replace(/ +$/, "").split(/ +/).slice(1).map(readTerm)
  return terms.map((term, at) => {
    const is_again = ONCE.includes(term.name) && terms.findIndex((one) => isSame(one, term)) < at
    const fault =
      term.fault ?? (is_again ? `"${term.name}=" is allowed only once in the record` : null)
    return { ...term, fault }
  })
}

const isSame = (one: SpfTerm, other: SpfTerm) => one.name === other.name

function readTerm(text: string): SpfTerm {
  const modifier = /^([a-z][a-z0-9_.-]*)=(.*)$/i.exec(text)
  if (modifier) {
    const name = (modifier[1] ?? "").toLowerCase()
    const value = modifier[2] ?? ""
    const fault = modifierFault(name, value)
    return { text, qualifier: "+", name, value, is_modifier: true, fault }
  }
  const found = /^([+\-~?]?)([a-z0-9]+)([:/].*)?$/i.exec(text)
  const name = (found?.[2] ?? text).toLowerCase()
  const rest = found?.[3] ?? ""
  const value = rest.startsWith(":") ? rest.slice(1) : rest
  const qualifier = ((found?.[1] || "+") as Qualifier) ?? "+"
  const fault = found ? mechanismFault(name, rest) : `"${text}" cannot be read`
  return { text, qualifier, name, value, is_modifier: false, fault }
}

function modifierFault(name: string, value: string): string | null {
  if (MECHANISMS.includes(name))
    return `"${name}" must be followed by a colon, not by an equals sign`
  if (!ONCE.includes(name)) return macroFault(value, ANY_MACRO)
  return value === "" ? `"${name}" needs a name after the equals sign` : nameFault(value)
}

/** `rest` is what follows the name, with its sign. */
function mechanismFault(name: string, rest: string): string | null {
  if (ONCE.includes(name)) return `"${name}" must be followed by an equals sign`
  if (!MECHANISMS.includes(name)) return `SPF has no mechanism "${name}"`
  if (name === "all") return rest === "" ? null : '"all" takes no value'
  const is_given = /^:./.test(rest)
  if (NEEDS_VALUE.includes(name) && !is_given) return `"${name}" needs a value after a colon`
  if (name === "ip4" || name === "ip6") return networkFault(name, rest.slice(1))
  if (rest === "") return null
  // Only hosts stand for addresses, and so for networks.
  const lengths = name === "a" || name === "mx" ? LENGTHS.exec(rest) : null
  if (lengths && !(fits(lengths[1], 32) && fits(lengths[2], 128))) {
    return `"${name}${rest}" has a wrong network length: it must be /0 to /32, or //0 to //128 for IPv6`
  }
  const domain = rest.slice(0, lengths?.index)
  if (domain === "") return null
  if (/^:./.test(domain)) return nameFault(domain.slice(1))
  return domain === ":"
    ? `"${name}:" needs a name after the colon`
    : `"${name}${rest}" cannot be read`
}

/** `/24`, `//64` or both at the end. */
const LENGTHS = /(?:\/(\d+))?(?:\/\/(\d+))?$/

const fits = (bits: string | undefined, most: number) =>
  bits === undefined || (/^(?:0|[1-9]\d*)$/.test(bits) && Number(bits) <= most)

/** RFC 7208 5.6. */
function networkFault(name: "ip4" | "ip6", value: string): string | null {
  const [base = "", bits, ...more] = value.split("/")
  const is_v6 = base.includes(":")
  const is_address = isAddress(base) && !base.includes("%") && is_v6 === (name === "ip6")
  if (is_address && fits(bits, is_v6 ? 128 : 32) && more.length === 0) return null
  return `"${value}" is not an ${is_v6 || name === "ip6" ? "IPv6" : "IPv4"} address or network`
}

const macros = (letters: string) =>
  new RegExp(`%(?:[%_-]|\\{[${letters}](?:0*[1-9]\\d*)?r?[-.+,/_=]*\\})`, "gi")

/** RFC 7208 7.2: three of them make sense in explanations only. */
const NAME_MACRO = macros("slodiphv")
const ANY_MACRO = macros("slodiphvcrt")

/** `toplabel` of RFC 7208 7.1: no number. */
const TOP = /^(?=.*[a-z-])[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/i

/**
 * RFC 7208 7.1. A text that is no DNS name but fits the syntax (an empty label) is reported as
 * well, because some receivers ignore the whole record (RFC 7208 4.8).
 */
function nameFault(spec: string): string | null {
  const fault = macroFault(spec, NAME_MACRO)
  if (fault !== null) return fault
  if (isAddress(spec)) return `"${spec}" is an address, and an address needs ip4: or ip6: before it`
  const plain = spec.replace(NAME_MACRO, "%").replace(/(?<=.)\.$/, "")
  if (plain.endsWith("%")) return null
  if (isBare(plain)) return `"${spec}" must be a full name, such as ${spec}.example.com`
  const labels = plain.split(".")
  const is_name = labels.every((label) => /^[^.]{1,63}$/.test(label)) && labels.length > 1
  return is_name && TOP.test(labels.at(-1) ?? "") ? null : `"${spec}" is not a host name`
}

function macroFault(text: string, known: RegExp): string | null {
  if (!/^[!-~]*$/.test(text)) return `"${text}" has characters that SPF does not know`
  if (!text.replace(known, "").includes("%")) return null
  return `"${text}" has a "%" that does not begin a macro`
}

const isBare = (name: string) => /^[a-z0-9_-]+$/i.test(name)

/**
 * Whether a term names a host without its domain. Only machines of the same network can resolve
 * that.
 */
export const isBareHost = ({ name, value }: SpfTerm) => /^(?:a|mx)$/.test(name) && isBare(value)

/** Whether a term equals a required mechanism, apart from its qualifier. */
export function isSameMechanism(term: SpfTerm, wanted: string): boolean {
  const other = readTerm(wanted)
  const bare = (value: string) => value.toLowerCase().replace(/\.$/, "")
  return !term.is_modifier && isSame(term, other) && bare(term.value) === bare(other.value)
}

const HOST = "[A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]+)*\\.?"

/** How a mechanism of ours may look: without a qualifier, without macros. */
export const OWN_MECHANISM = `^(?:(?:include|a|mx|exists):${HOST}|ip4:[0-9.]+(?:/\\d+)?|ip6:[0-9a-fA-F:.]+(?:/\\d+)?)$`

/** What is wrong with a mechanism that is to be put into records; null when nothing is. */
export const ownFault = (text: string): string | null =>
  new RegExp(OWN_MECHANISM).test(text) ? readTerm(text).fault : `"${text}" is not an SPF mechanism`
