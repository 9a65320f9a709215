import { DnsError, type Resolver } from "../core/dns"
import { slipOf } from "../lib/record-text"
import { asksDns, isBareHost, isSameMechanism, isSpf, parseSpf, type SpfTerm } from "../lib/spf"
import { mismatch, missing, type RecordResult, undecided } from "./check-result"

/** RFC 7208 4.6.4. */
const MOST_LOOKUPS = 10

/** Where a walk that cannot end is left. */
const MOST_RECORDS = 40

interface Walk {
  txt: Resolver["txt"]
  wanted: Set<string>
  /** Mechanisms of ours that a receiver comes to, with the lookups it needs for that. */
  found: Map<string, number>
  lookups: number
  records: number
  /** Why receivers give up on the record, or would where they come so far. */
  fault: { mistake: string; hint: string } | undefined
  /** They give up before they have seen all mechanisms of ours. */
  is_fatal: boolean
  /** Not decided yet: a server gave no answer. */
  is_open: boolean
  plus_all: boolean
}

/**
 * Exactly one record, and every mechanism of ours in it or in a record that it includes, within ten
 * lookups. A fault behind them is told, and does no harm to our mail: receivers stop at the first
 * match. Undecided when a record included before them cannot be asked for at the moment.
 */
export async function checkSpf(
  values: string[],
  wanted: string[],
  host: string,
  txt: Resolver["txt"],
): Promise<RecordResult> {
  const records = values.filter(isSpf)
  if (records.length > 1) {
    const hint = `There are ${records.length} SPF records, so receivers use none of them. Join them into one.`
    return mismatch("double_spf", hint)
  }
  const [only] = records
  if (only === undefined) return almost(values, wanted)
  const slip = /["'\u2018-\u201f\\\t]/.test(only) ? slipOf(only, () => true) : undefined
  if (slip) return mismatch(slip.mistake, slip.hint)
  const walk = newWalk(txt, wanted)
  await visit(walk, only, { path: [host.toLowerCase()], passes: true })
  return concluded(walk, only, wanted)
}

const newWalk = (txt: Resolver["txt"], wanted: string[]): Walk => ({
  txt,
  wanted: new Set(wanted),
  found: new Map(),
  lookups: 0,
  records: 0,
  fault: undefined,
  is_fatal: false,
  is_open: false,
  plus_all: false,
})

function almost(values: string[], wanted: string[]): RecordResult {
  const near = values.find((value) => /spf/i.test(value)) ?? values[0]
  if (near === undefined) return missing("not_there", "There is no TXT record with this name yet.")
  const slip = slipOf(near, isSpf)
  if (slip) return mismatch(slip.mistake, slip.hint)
  if (!/spf/i.test(near)) {
    return mismatch(
      "other_text",
      "The TXT record with this name is not an SPF record. Add an SPF record beside it.",
    )
  }
  const hint = `An SPF record must begin with "v=spf1" and a space: v=spf1 ${wanted.join(" ")} ~all`
  return mismatch("spf_prefix", hint)
}

/** Reads one record and its includes in the order of a receiver. */
async function visit(walk: Walk, text: string, way: Way): Promise<void> {
  walk.records += 1
  const terms = parseSpf(text)
  const wrong = terms.find((term) => term.fault !== null && !isOfOurs(walk, term))
  // The whole record is read before any of it counts (RFC 7208 4.6).
  if (wrong) {
    const whose = way.path.length > 1 ? ` of ${way.path.at(-1)}` : ""
    return giveUp(walk, "spf_syntax", `SPF${whose} cannot be read: ${wrong.fault}.`)
  }
  for (const term of terms) {
    if (walk.fault) return
    if (asksDns(term)) walk.lookups += 1
    const at = walk.lookups
    if (term.name === "include") await enter(walk, term, way)
    if (!walk.fault) note(walk, term, way, at)
    if (term.name === "all") return
  }
  const redirect = terms.find(({ name, is_modifier }) => is_modifier && name === "redirect")
  if (redirect && !walk.fault) await enter(walk, redirect, way)
}

/** In a private network our own host may be one without a domain. */
const isOfOurs = ({ wanted }: Walk, term: SpfTerm) =>
  isBareHost(term) && [...wanted].some((mechanism) => isSameMechanism(term, mechanism))

interface Way {
  path: string[]
  /** What matches here lets mail pass: it was included with `+` everywhere. */
  passes: boolean
}

const hasAll = ({ wanted, found }: Walk) => found.size === wanted.size

function giveUp(walk: Walk, mistake: string, hint: string) {
  walk.fault = { mistake, hint }
  walk.is_fatal = !hasAll(walk)
}

function note(walk: Walk, term: SpfTerm, { path, passes }: Way, at: number) {
  const is_yes = passes && term.qualifier === "+"
  for (const mechanism of walk.wanted) {
    if (is_yes && isSameMechanism(term, mechanism) && !walk.found.has(mechanism)) {
      walk.found.set(mechanism, at)
    }
  }
  if (path.length === 1 && term.name === "all" && term.qualifier === "+") walk.plus_all = true
}

async function enter(walk: Walk, { name: how, value, qualifier }: SpfTerm, way: Way) {
  const target = value.toLowerCase().replace(/\.$/, "")
  const path = [...way.path, target]
  if (way.path.includes(target)) {
    return giveUp(
      walk,
      "spf_loop",
      `The SPF records include each other in a circle: ${path.join(" → ")}.`,
    )
  }
  if (walk.records >= MOST_RECORDS || target.includes("%")) return
  const all = await recordsAt(walk, target)
  if (all instanceof DnsError) {
    if (!hasAll(walk)) giveUpAt(walk, `${how}:${target}`, all)
    return
  }
  const [record] = all
  if (record === undefined || all.length > 1) {
    const what = record === undefined ? "no SPF record" : `${all.length} SPF records`
    const hint = `${how}:${target} leads to ${what}, which makes the whole SPF record invalid. Remove it.`
    return giveUp(walk, "spf_include_empty", hint)
  }
  await visit(walk, record, { path, passes: way.passes && qualifier === "+" })
}

function giveUpAt(walk: Walk, term: string, { transient, message }: DnsError) {
  walk.is_open = transient
  const hint = `${term} is before our part, and receivers cannot resolve it: ${message}`
  giveUp(walk, transient ? "spf_include_unresolved" : "spf_include_empty", hint)
}

/** The error where it cannot be asked for. */
async function recordsAt({ txt }: Walk, target: string): Promise<string[] | DnsError> {
  try {
    return (await txt(target)).map((parts) => parts.join("")).filter(isSpf)
  } catch (error) {
    if (error instanceof DnsError) return error
    throw error
  }
}

function concluded(walk: Walk, text: string, wanted: string[]): RecordResult {
  if (walk.fault && walk.is_fatal) {
    const { mistake, hint } = walk.fault
    return walk.is_open ? undecided(mistake, hint) : mismatch(mistake, hint)
  }
  const late = wanted.find((one) => (walk.found.get(one) ?? 0) > MOST_LOOKUPS)
  const absent = wanted.filter((one) => !walk.found.has(one))
  if (late !== undefined || (absent.length > 0 && walk.lookups > MOST_LOOKUPS)) {
    return mismatch("spf_too_many_lookups", lookupHint(walk.lookups))
  }
  if (absent.length > 0) return absence(text, absent)
  if (walk.plus_all) return { ok: true, mistake: "spf_plus_all", hint: PLUS_ALL }
  if (walk.fault) return { ok: true, ...walk.fault }
  if (walk.lookups > MOST_LOOKUPS) {
    return { ok: true, mistake: "spf_too_many_lookups", hint: lookupHint(walk.lookups) }
  }
  return { ok: true }
}

const PLUS_ALL =
  "+all lets everybody send in the name of this domain. Replace it with ~all or -all."

const lookupHint = (lookups: number) =>
  `SPF needs ${lookups} DNS lookups, but receivers stop after ${MOST_LOOKUPS}. Remove includes that you no longer use.`

function absence(text: string, absent: string[]): RecordResult {
  const terms = parseSpf(text)
  for (const mechanism of absent) {
    const at = terms.findIndex((term) => isSameMechanism(term, mechanism))
    const all = terms.findIndex(({ name }) => name === "all")
    const term = terms[at]
    if (!term) continue
    if (all >= 0 && all < at) {
      const hint = `${mechanism} is after ${terms[all]?.text}, where receivers stop reading. Move it before that part.`
      return mismatch("spf_after_all", hint)
    }
    const hint = `${term.text} does not allow the sender. Write ${mechanism} without "${term.qualifier}".`
    return mismatch("spf_qualifier", hint)
  }
  if (terms.some(({ name, qualifier }) => name === "all" && qualifier === "+")) {
    return mismatch("spf_plus_all", `${PLUS_ALL} Also add ${absent.join(" ")} before it.`)
  }
  const hint = `The record does not name ${absent.join(" ")}. Add it before the last part.`
  return mismatch("spf_mechanism_missing", hint)
}
