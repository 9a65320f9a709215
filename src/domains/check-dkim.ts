import { firstDifference, parseTags, slipOf, type TagList } from "../lib/record-text"
import { mismatch, missing, type RecordResult } from "./check-result"

interface WantedKey {
  algorithm: "rsa" | "ed25519"
  public_key: string
}

/** How many characters may differ before a key counts as another key instead of a typing error. */
const SLIP_CHARACTERS = 12

/** Exactly one key record, with our key. Spaces within the key do not count (RFC 6376 3.6.1). */
export function checkDkim(values: string[], wanted: WantedKey): RecordResult {
  const right = values.filter((value) => isRight(value, wanted))
  if (right.length > 0 && values.length === right.length) return { ok: true }
  if (right.length > 0) {
    const hint = `${values.length} TXT records have this name, so receivers may take the wrong one. Keep only ours.`
    return mismatch("two_keys", hint)
  }
  const [first] = values
  if (first === undefined) return missing("not_there", "There is no TXT record with this name yet.")
  if (values.length > 1 && isSplit(values, wanted)) {
    const hint = `The key was split into ${values.length} records. It must be one record; only the strings in it may be split.`
    return mismatch("split_into_records", hint)
  }
  const keys = values.filter((value) => !isOfOther(value, wanted))
  const near = keys.find((value) => value.includes("p=")) ?? keys[0]
  return near === undefined ? mismatch("other_text", otherText(first)) : explain(near, wanted)
}

/** Not a key at all: the text names another kind of record, or has no tag of a key. */
function isOfOther(value: string, { public_key }: WantedKey): boolean {
  if (/^\W*v\s*=\s*(?:spf1|DMARC1)\b/i.test(value)) return true
  const [part] = /[A-Za-z0-9+/]{24}/.exec(value) ?? [] // so long a part of the key is no chance
  const is_ours = part !== undefined && public_key.includes(part)
  return !is_ours && !/DKIM1|(?:^|[^a-z\d])p\s*=/i.test(value)
}

const SHOWN = 40

function otherText(found: string): string {
  const shown = found.length > SHOWN ? `${found.slice(0, SHOWN)}…` : found
  return `"${shown}" is not a key. A wildcard (*) or the record of another service answers here. Add ours under exactly this name.`
}

/** Whether this is our key, written as verifiers can read it. */
function isRight(value: string, wanted: WantedKey): boolean {
  const list = parseTags(value)
  return faultOf(value, list, wanted) === undefined && keyOf(list) === wanted.public_key
}

const keyOf = ({ tags }: TagList) => (tags.get("p") ?? "").replace(/\s+/g, "")

function isSplit(values: string[], wanted: WantedKey): boolean {
  const orders = [values, [...values].reverse()]
  const head = values.find((value) => value.includes("p=")) ?? ""
  orders.push([head, ...values.filter((value) => value !== head)])
  return orders.some((parts) => isRight(parts.join(""), wanted))
}

function explain(found: string, wanted: WantedKey): RecordResult {
  const slip = slipOf(found, (cleaned) => isRight(cleaned, wanted))
  if (slip) return mismatch(slip.mistake, slip.hint)
  const list = parseTags(found)
  const fault = faultOf(found, list, wanted)
  return fault ?? keyFault(list, wanted)
}

/** What is wrong around the key; undefined when a verifier can read the record. */
function faultOf(text: string, list: TagList, wanted: WantedKey): RecordResult | undefined {
  const { tags, strange, has_empty } = list
  const version = tags.get("v")
  if (version !== undefined && /\s/.test(version)) {
    return mismatch("missing_semicolon", MISSING_SEMICOLON)
  }
  if (/(^|[\s;])k\s*=\s*\w+\s+p\s*=/.test(text)) {
    return mismatch("missing_semicolon", MISSING_SEMICOLON)
  }
  const upper = [...tags.keys()].find((name) => /^[VKPHST]$/.test(name))
  if (upper) {
    const hint = `The tag ${upper}= must be ${upper.toLowerCase()}=, because tags are case-sensitive.`
    return mismatch("uppercase_tag", hint)
  }
  if (version !== undefined && version !== "DKIM1") {
    return mismatch("version_wrong", `v=${version} must be v=DKIM1, in capitals.`)
  }
  if (version !== undefined && !/^\s*v\s*=/.test(text)) {
    return mismatch("version_not_first", "v=DKIM1 must be the first tag of the record.")
  }
  if (has_empty)
    return mismatch("extra_semicolon", "There are two semicolons side by side. Remove one.")
  if (strange.length > 0) {
    return mismatch(
      "strange_part",
      `"${strange[0]}" is not a tag. Write only name=value between semicolons.`,
    )
  }
  const algorithm = tags.get("k") ?? "rsa"
  if (algorithm !== wanted.algorithm) {
    return mismatch(
      "key_type",
      `The record says k=${algorithm}, but this key is ${wanted.algorithm}.`,
    )
  }
  return restriction(tags)
}

/** What the record itself keeps its key from (RFC 6376 3.6.1). */
function restriction(tags: TagList["tags"]): RecordResult | undefined {
  const lists = (name: string, ...any: string[]) =>
    tags
      .get(name)
      ?.split(":")
      .some((one) => any.includes(one.trim().toLowerCase())) ?? true
  if (!lists("h", "sha256")) {
    return mismatch("key_hash", `h=${tags.get("h")} does not allow SHA-256. Remove the tag h=.`)
  }
  if (lists("s", "*", "email")) return undefined
  return mismatch(
    "key_service",
    `s=${tags.get("s")} does not allow the key for mail. Remove the tag s=.`,
  )
}

const MISSING_SEMICOLON = "A semicolon is missing. The parts must be v=DKIM1; k=…; p=…"

function keyFault(list: TagList, { public_key }: WantedKey): RecordResult {
  const given = list.tags.get("p")
  if (given === undefined)
    return mismatch("key_missing", "The record has no key: the tag p= is missing.")
  const found = keyOf(list)
  if (found === "")
    return mismatch(
      "revoked",
      "p= is empty, which means that the key is revoked. Enter the given value.",
    )
  const difference = { at: firstDifference(public_key, found), expected: public_key, found }
  if (given.trim().replace(/ /g, "+") === public_key) {
    const hint = "The plus signs of the key became spaces. Copy the key again."
    return mismatch("plus_lost", hint, difference)
  }
  const start = found.replace(/(…|\.{3,}).*$/, "")
  if (start.length > 0 && start.length < public_key.length && public_key.startsWith(start)) {
    const hint = `The key is cut off after ${start.length} of ${public_key.length} characters.`
    return mismatch(
      "truncated",
      `${hint} Some DNS providers need it in strings of 255 characters.`,
      difference,
    )
  }
  if (found.startsWith(public_key)) {
    return mismatch("extra_at_end", "There is text after the key. Remove that text.", difference)
  }
  if (changes(public_key, found) <= SLIP_CHARACTERS) {
    const hint = `The key is wrong from character ${difference.at + 1} on. Copy it again.`
    return mismatch("wrong_bytes", hint, difference)
  }
  const hint = "This is the key of another service, or an older key of ours. Enter the given key."
  return mismatch("other_key", hint, difference)
}

/** How many characters differ between what both begin and end with. */
function changes(one: string, other: string): number {
  const at = firstDifference(one, other)
  let end = 0
  while (end < one.length - at && one.at(-1 - end) === other.at(-1 - end)) end += 1
  return Math.max(one.length, other.length) - at - end
}
