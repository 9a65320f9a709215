import { parseTags } from "../../lib/tag-list"
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

const isDmarc = (text: string) => /^v\s*=\s*DMARC1\s*(;|$)/.test(text)

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
  const { tags, strange, has_empty } = parseTags(text)
  const upper = [...tags.keys()].find((name) => !KNOWN.includes(name) && isKnownLower(name))
  if (upper) {
    const hint = `The tag ${upper}= has to be ${upper.toLowerCase()}=: tags are told apart by case.`
    return mismatch("uppercase_tag", hint)
  }
  const policy = tags.get("p")
  if (policy === undefined) {
    return mismatch("dmarc_policy", "The policy is missing: add p=none, quarantine or reject.")
  }
  if (/[\s,]/.test(policy)) {
    return mismatch("missing_semicolon", `A semicolon is missing in "p=${policy}".`)
  }
  for (const [name, value] of tags) {
    if (VALUES[name]?.test(value) === false) {
      const hint = `${name}=${value} is no value that DMARC knows${name === "p" ? ": none, quarantine or reject" : ""}.`
      return mismatch(name === "p" ? "dmarc_policy" : "dmarc_tag", hint)
    }
  }
  return judgeRest(tags, strange, has_empty)
}

function judgeRest(tags: Map<string, string>, strange: string[], has_empty: boolean): Verdict {
  for (const name of ["rua", "ruf"]) {
    const bad = tags
      .get(name)
      ?.split(",")
      .find((one) => !/^\s*mailto:\S+@\S+\s*$/i.test(one))
    if (bad !== undefined) {
      const hint = `${name}=${bad.trim()} has to be ${name}=mailto:somebody@example.com.`
      return mismatch("dmarc_address", hint)
    }
  }
  const unknown = [...tags.keys()].find((name) => !KNOWN.includes(name))
  if (unknown) return mismatch("dmarc_tag", `DMARC knows no tag ${unknown}=.`)
  if (strange.length > 0) {
    return mismatch(
      "strange_part",
      `"${strange[0]}" is no tag. Between semicolons only name=value.`,
    )
  }
  if (has_empty)
    return mismatch("extra_semicolon", "Two semicolons follow one another. Remove one.")
  return { ok: true }
}

const isKnownLower = (name: string) => KNOWN.includes(name.toLowerCase())
