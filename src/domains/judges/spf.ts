import type { Resolver } from "../../core/dns"
import { asksDns, isSameMechanism, isSpf, parseSpf, type SpfTerm } from "../../lib/spf"
import { slipOf } from "../../lib/text-slip"
import { mismatch, missing, type Verdict } from "./verdict"

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
  fault: Verdict | undefined
  plus_all: boolean
  /** A receiver has its answer: what follows is not read. */
  ended: boolean
}

/**
 * Exactly one record, and every mechanism of ours in it or in what it includes, within ten lookups.
 * Rejects with DnsError when an included record cannot be asked for now.
 */
export async function judgeSpf(
  values: string[],
  wanted: string[],
  host: string,
  txt: Resolver["txt"],
): Promise<Verdict> {
  const records = values.filter(isSpf)
  if (records.length > 1) {
    const hint = `There are ${records.length} SPF records; then receivers use none. Join them into one.`
    return mismatch("double_spf", hint)
  }
  const [only] = records
  if (only === undefined) return almost(values, wanted)
  const slip = /["'\u2018-\u201f\\\t]/.test(only) ? slipOf(only, () => true) : undefined
  if (slip) return mismatch(slip.mistake, slip.hint)
  const walk = newWalk(txt, wanted)
  await visit(walk, only, [host.toLowerCase()])
  return walk.fault ?? concluded(walk, only, wanted)
}

const newWalk = (txt: Resolver["txt"], wanted: string[]): Walk => ({
  txt,
  wanted: new Set(wanted),
  found: new Map(),
  lookups: 0,
  records: 0,
  fault: undefined,
  plus_all: false,
  ended: false,
})

function almost(values: string[], wanted: string[]): Verdict {
  const near = values.find((value) => /spf/i.test(value)) ?? values[0]
  if (near === undefined) return missing("not_there", "There is no TXT record of this name yet.")
  const slip = slipOf(near, isSpf)
  if (slip) return mismatch(slip.mistake, slip.hint)
  if (!/spf/i.test(near)) {
    return mismatch(
      "other_text",
      "The TXT record of this name is no SPF record. Add one beside it.",
    )
  }
  const hint = `An SPF record begins with "v=spf1 ", followed by a space: v=spf1 ${wanted.join(" ")} ~all`
  return mismatch("spf_prefix", hint)
}

/** Reads one record in the order of a receiver, and whatever it includes. */
async function visit(walk: Walk, text: string, path: string[]): Promise<void> {
  walk.records += 1
  const terms = parseSpf(text)
  for (const term of terms) {
    if (walk.fault) return
    if (term.fault) {
      walk.fault = mismatch("spf_syntax", `SPF cannot be read: ${term.fault}.`)
      return
    }
    if (asksDns(term)) walk.lookups += 1
    note(walk, term, path.length === 1)
    if (term.name === "include") await enter(walk, term.value, path, "include")
    if (term.name === "all") {
      if (path.length === 1) walk.ended = true
      return
    }
  }
  const redirect = terms.find(({ name, is_modifier }) => is_modifier && name === "redirect")
  if (redirect && !walk.fault) await enter(walk, redirect.value, path, "redirect")
}

function note(walk: Walk, term: SpfTerm, is_top: boolean) {
  for (const mechanism of walk.wanted) {
    if (isSameMechanism(term, mechanism) && term.qualifier === "+" && !walk.found.has(mechanism)) {
      walk.found.set(mechanism, walk.lookups)
    }
  }
  if (is_top && term.name === "all" && term.qualifier === "+") walk.plus_all = true
}

async function enter(walk: Walk, name: string, path: string[], how: string) {
  const target = name.toLowerCase().replace(/\.$/, "")
  if (path.includes(target)) {
    walk.fault = mismatch("spf_loop", `SPF turns in a circle: ${[...path, target].join(" → ")}.`)
    return
  }
  if (walk.records >= MOST_RECORDS || target.includes("%")) return
  const all = (await walk.txt(target)).map((parts) => parts.join("")).filter(isSpf)
  const [record] = all
  if (record === undefined || all.length > 1) {
    const what = record === undefined ? "no SPF record" : `${all.length} SPF records`
    const hint = `${how}:${target} leads to ${what}, which makes all of it invalid. Remove it.`
    walk.fault = mismatch("spf_include_empty", hint)
    return
  }
  await visit(walk, record, [...path, target])
}

function concluded(walk: Walk, text: string, wanted: string[]): Verdict {
  const late = wanted.find((one) => (walk.found.get(one) ?? 0) > MOST_LOOKUPS)
  const absent = wanted.filter((one) => !walk.found.has(one))
  if (late !== undefined || (absent.length > 0 && walk.lookups > MOST_LOOKUPS)) {
    return mismatch("spf_too_many_lookups", lookupHint(walk.lookups))
  }
  if (absent.length > 0) return absence(text, absent)
  if (walk.plus_all) return { ok: true, mistake: "spf_plus_all", hint: PLUS_ALL }
  if (walk.lookups > MOST_LOOKUPS) {
    return { ok: true, mistake: "spf_too_many_lookups", hint: lookupHint(walk.lookups) }
  }
  return { ok: true }
}

const PLUS_ALL =
  "+all lets everybody send in the name of this domain. Put ~all or -all in its place."

const lookupHint = (lookups: number) =>
  `SPF needs ${lookups} DNS lookups; receivers stop at ${MOST_LOOKUPS}. Remove includes you no longer use.`

function absence(text: string, absent: string[]): Verdict {
  const terms = parseSpf(text)
  for (const mechanism of absent) {
    const at = terms.findIndex((term) => isSameMechanism(term, mechanism))
    const all = terms.findIndex(({ name }) => name === "all")
    const term = terms[at]
    if (!term) continue
    if (all >= 0 && all < at) {
      const hint = `${mechanism} stands behind ${terms[all]?.text}, where nobody reads on. Move it before it.`
      return mismatch("spf_after_all", hint)
    }
    const hint = `${term.text} does not allow, it warns: write ${mechanism} without "${term.qualifier}".`
    return mismatch("spf_qualifier", hint)
  }
  if (terms.some(({ name, qualifier }) => name === "all" && qualifier === "+")) {
    return mismatch("spf_plus_all", `${PLUS_ALL} And add ${absent.join(" ")} before it.`)
  }
  const hint = `The record does not name ${absent.join(" ")}. Put it before the last part.`
  return mismatch("spf_mechanism_missing", hint)
}
