import { parseTags, type TagList } from "../../lib/tag-list"
import { slipOf } from "../../lib/text-slip"
import { mismatch, missing, type Verdict } from "./verdict"

const VALUES: Record<string, RegExp> = {
  p: /^(none|quarantine|reject)$/i,
  sp: /^(none|quarantine|reject)$/i,
  np: /^(none|quarantine|reject)$/i,
  adkim: /^[rs]$/i,
  aspf: /^[rs]$/i,
  pct: /^(100|\d{1,2})$/,
  fo: /^[01ds](:[01ds])*$/i,
  ri: /^\d+$/,
}

/** RFC 7489 6.3, and what its successor adds. */
const KNOWN = [...Object.keys(VALUES), "v", "rua", "ruf", "rf", "t", "psd"]

/** Whether receivers take a text for a policy at all, good or bad. */
export const isDmarc = (text: string) => /^v\s*=\s*DMARC1\s*(;|$)/.test(text)

/** Exactly one valid policy; texts that are none do no harm (RFC 7489 6.6.3). */
export function judgeDmarc(values: string[]): Verdict {
  const records = values.filter(isDmarc)
  if (records.length > 1) {
    const hint = `There are ${records.length} DMARC records; then receivers use none. Keep one.`
    return mismatch("two_dmarc", hint)
  }
  const [only] = records
  if (only !== undefined) return judgeOne(only)
  const near = values.find((value) => /dmarc/i.test(value)) ?? values[0]
  if (near === undefined) return missing("not_there", "There is no TXT record of this name yet.")
  return almost(near)
}

/** A policy that receivers act upon. */
export const isPolicy = (value: string) => isDmarc(value) && judgeOne(value).ok

function almost(found: string): Verdict {
  const slip = slipOf(found, isPolicy)
  if (slip) return mismatch(slip.mistake, slip.hint)
  if (/^v\s*=\s*dmarc1\s*(;|$)/i.test(found)) {
    return mismatch("version_wrong", "The version has to be v=DMARC1, in capitals.")
  }
  if (/^V\s*=/.test(found)) {
    return mismatch("uppercase_tag", "The tag V= has to be v=: tags are told apart by case.")
  }
  if (/^v\s*=\s*DMARC1\s*,/i.test(found)) {
    return mismatch("wrong_separator", "The parts are separated by semicolons, not by commas.")
  }
  if (/^v\s*=\s*DMARC1\s+\w/i.test(found)) {
    return mismatch("missing_semicolon", "A semicolon is missing: v=DMARC1; p=none")
  }
  if (/;\s*v\s*=\s*DMARC1/i.test(found)) {
    return mismatch("version_not_first", "v=DMARC1 has to be the first tag of the record.")
  }
  return mismatch("other_text", "The TXT record of this name is no DMARC policy.")
}

function judgeOne(text: string): Verdict {
  const list = parseTags(text)
  const { tags } = list
  const policy = tags.get("p")
  if (policy === undefined && tags.has("P")) return mismatch("uppercase_tag", inLowerCase("P"))
  if (policy === undefined) {
    return mismatch("dmarc_policy", "The policy is missing: add p=none, quarantine or reject.")
  }
  if (/[\s,]/.test(policy)) {
    return mismatch("missing_semicolon", `A semicolon is missing in "p=${policy}".`)
  }
  if (!VALUES.p?.test(policy)) {
    const hint = `p=${policy} is no value that DMARC knows: none, quarantine or reject.`
    return mismatch("dmarc_policy", hint)
  }
  // Receivers pass over whatever else is wrong (RFC 7489 6.3): it is told, and the policy counts.
  return { ok: true, ...adviceOn(list) }
}

interface Advice {
  mistake: string
  hint: string
}

function adviceOn({ tags, strange, has_empty }: TagList): Advice | undefined {
  const names = [...tags.keys()]
  const upper = names.find((name) => !KNOWN.includes(name) && KNOWN.includes(name.toLowerCase()))
  if (upper) return { mistake: "uppercase_tag", hint: inLowerCase(upper) }
  const unknown = names.find((name) => !KNOWN.includes(name))
  if (unknown) return { mistake: "dmarc_tag", hint: `DMARC knows no tag ${unknown}=.` }
  for (const [name, value] of tags) {
    if (VALUES[name]?.test(value) !== false) continue
    return { mistake: "dmarc_tag", hint: `${name}=${value} is no value that DMARC knows.` }
  }
  if (strange.length > 0) {
    const hint = `"${strange[0]}" is no tag. Between semicolons only name=value.`
    return { mistake: "strange_part", hint }
  }
  if (has_empty) {
    return { mistake: "extra_semicolon", hint: "Two semicolons follow one another. Remove one." }
  }
  return adviceOnReports(tags)
}

/** Others than mail are allowed, and nobody sends to them. */
const REPORTS_TO = /^\s*(?:mailto:\S+@\S+|https?:\S+)\s*$/i

function adviceOnReports(tags: TagList["tags"]): Advice | undefined {
  for (const name of ["rua", "ruf"]) {
    const given = tags.get(name)?.split(",")
    const bad = given?.find((one) => !REPORTS_TO.test(one))
    if (bad === undefined) continue
    const hint = `${name}=${bad.trim()} has to be ${name}=mailto:somebody@example.com.`
    return { mistake: "dmarc_address", hint }
  }
  return undefined
}

const inLowerCase = (tag: string) =>
  `The tag ${tag}= has to be ${tag.toLowerCase()}=: tags are told apart by case.`
