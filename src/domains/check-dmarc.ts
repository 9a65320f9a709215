import { parseTags, slipOf, type TagList } from "../lib/record-text"
import { mismatch, missing, type RecordResult } from "./check-result"

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

/** Exactly one valid policy. Other texts at the name do not matter (RFC 7489 6.6.3). */
export function checkDmarc(values: string[]): RecordResult {
  const records = values.filter(isDmarc)
  if (records.length > 1) {
    const hint = `There are ${records.length} DMARC records, so receivers use none of them. Keep one.`
    return mismatch("two_dmarc", hint)
  }
  const [only] = records
  if (only !== undefined) return checkPolicy(only)
  const near = values.find((value) => /dmarc/i.test(value)) ?? values[0]
  if (near === undefined) return missing("not_there", "There is no TXT record with this name yet.")
  return almost(near)
}

/** A policy that receivers act upon. */
export const isPolicy = (value: string) => isDmarc(value) && checkPolicy(value).ok

function almost(found: string): RecordResult {
  const slip = slipOf(found, isPolicy)
  if (slip) return mismatch(slip.mistake, slip.hint)
  if (/^v\s*=\s*dmarc1\s*(;|$)/i.test(found)) {
    return mismatch("version_wrong", "The version must be v=DMARC1, in capitals.")
  }
  if (/^V\s*=/.test(found)) {
    return mismatch("uppercase_tag", "The tag V= must be v=, because tags are case-sensitive.")
  }
  if (/^v\s*=\s*DMARC1\s*,/i.test(found)) {
    return mismatch("wrong_separator", "Separate the parts by semicolons, not by commas.")
  }
  if (/^v\s*=\s*DMARC1\s+\w/i.test(found)) {
    return mismatch(
      "missing_semicolon",
      "A semicolon is missing. Write, for example, v=DMARC1; p=none",
    )
  }
  if (/;\s*v\s*=\s*DMARC1/i.test(found)) {
    return mismatch("version_not_first", "v=DMARC1 must be the first tag of the record.")
  }
  return mismatch("other_text", "The TXT record with this name is not a DMARC policy. Add one.")
}

function checkPolicy(text: string): RecordResult {
  const list = parseTags(text)
  const { tags } = list
  const policy = tags.get("p")
  if (policy === undefined && tags.has("P")) return mismatch("uppercase_tag", inLowerCase("P"))
  if (policy === undefined) {
    return { ok: true, ...(adviceOn(list) ?? { mistake: "dmarc_policy", hint: NO_POLICY }) }
  }
  if (/[\s,]/.test(policy)) {
    return mismatch("missing_semicolon", `A semicolon is missing in "p=${policy}".`)
  }
  const bad = ["p", "sp"].find((name) => VALUES[name]?.test(tags.get(name) ?? "none") === false)
  if (bad !== undefined) {
    const hint = `DMARC does not know ${bad}=${tags.get(bad)}. Use ${bad}=none, ${bad}=quarantine or ${bad}=reject.`
    // With an address for reports, receivers act as if the policy were p=none (RFC 7489 6.6.3).
    if (asksForReports(tags)) return { ok: true, mistake: "dmarc_policy", hint }
    return mismatch("dmarc_policy", hint)
  }
  // Receivers ignore any other fault (RFC 7489 6.3): it is told, and the policy counts.
  return { ok: true, ...adviceOn(list) }
}

const NO_POLICY =
  "The policy is missing, so receivers act as if it were p=none. Add p=none, p=quarantine or p=reject."

/** Whether a policy names an address for reports in the form of a URI. */
export const asksForReports = (tags: TagList["tags"]): boolean =>
  (tags.get("rua") ?? "").split(",").some((uri) => /^\s*[a-z][a-z0-9+.-]*:\S+\s*$/i.test(uri))

interface Advice {
  mistake: string
  hint: string
}

function adviceOn({ tags, strange, has_empty }: TagList): Advice | undefined {
  const names = [...tags.keys()]
  const upper = names.find((name) => !KNOWN.includes(name) && KNOWN.includes(name.toLowerCase()))
  if (upper) return { mistake: "uppercase_tag", hint: inLowerCase(upper) }
  const unknown = names.find((name) => !KNOWN.includes(name))
  if (unknown)
    return { mistake: "dmarc_tag", hint: `DMARC does not know the tag ${unknown}=. Remove it.` }
  for (const [name, value] of tags) {
    if (VALUES[name]?.test(value) !== false) continue
    return {
      mistake: "dmarc_tag",
      hint: `DMARC does not know ${name}=${value}. Correct or remove it.`,
    }
  }
  if (strange.length > 0) {
    const hint = `"${strange[0]}" is not a tag. Write only name=value between semicolons.`
    return { mistake: "strange_part", hint }
  }
  if (has_empty) {
    return {
      mistake: "extra_semicolon",
      hint: "There are two semicolons side by side. Remove one.",
    }
  }
  return adviceOnReports(tags)
}

/** Other schemes than `mailto` are allowed, but no receiver sends reports to them. */
const REPORTS_TO = /^\s*(?:mailto:\S+@\S+|https?:\S+)\s*$/i

function adviceOnReports(tags: TagList["tags"]): Advice | undefined {
  for (const name of ["rua", "ruf"]) {
    const given = tags.get(name)?.split(",")
    const bad = given?.find((one) => !REPORTS_TO.test(one))
    if (bad === undefined) continue
    const hint = `${name}=${bad.trim()} must have the form ${name}=mailto:somebody@example.com.`
    return { mistake: "dmarc_address", hint }
  }
  return undefined
}

const inLowerCase = (tag: string) =>
  `The tag ${tag}= must be ${tag.toLowerCase()}=, because tags are case-sensitive.`
