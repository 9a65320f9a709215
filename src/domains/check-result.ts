import { firstDifference, slipOf } from "../lib/record-text"
import type { Difference } from "./tables"

/** What one server's values for a name mean. */
export type RecordResult =
  | { ok: true; mistake?: string; hint?: string }
  | {
      ok: false
      /** `pending`: what decides it could not be asked for. */
      status: "mismatch" | "missing" | "pending"
      mistake: string
      hint: string
      difference?: Difference | undefined
    }

type Fault = Extract<RecordResult, { ok: false }>

const fault =
  (status: Fault["status"]) =>
  (mistake: string, hint: string, difference?: Difference): Fault => ({
    ...{ ok: false, status, mistake, hint, difference },
  })

export const mismatch = fault("mismatch")
export const missing = fault("missing")

/** What the record leads to has to be known first: it neither counts nor is it lost by that. */
export const undecided = fault("pending")

const PREFIX = "svc-domain-verification="

/** One TXT equals the wanted text; others beside it do no harm. */
export function checkVerification(values: string[], wanted: string): RecordResult {
  if (values.includes(wanted)) return { ok: true }
  for (const value of values) {
    const slip = slipOf(value, (cleaned) => cleaned === wanted)
    if (slip) return mismatch(slip.mistake, slip.hint)
  }
  const near = values.find((value) => value.toLowerCase().includes(PREFIX)) ?? values[0]
  if (near === undefined) return missing("not_there", "There is no TXT record with this name yet.")
  return explain(near, wanted)
}

function explain(found: string, wanted: string): RecordResult {
  const token = wanted.slice(PREFIX.length)
  const difference = { at: firstDifference(wanted, found), expected: wanted, found }
  if (found === token) {
    const hint = `The value is only the token. Put "${PREFIX}" before it.`
    return mismatch("prefix_missing", hint, difference)
  }
  if (found.toLowerCase() === wanted.toLowerCase()) {
    const hint = "The value differs in upper and lower case. Enter it exactly as it is given."
    return mismatch("case_changed", hint, difference)
  }
  if (found.length > PREFIX.length && wanted.startsWith(found)) {
    const hint = `The value is cut off after ${found.length} of ${wanted.length} characters. Enter all of it.`
    return mismatch("truncated", hint, difference)
  }
  if (found.startsWith(PREFIX)) {
    const hint =
      "The token belongs to another project or to an earlier attempt. Enter the given value."
    return mismatch("other_token", hint, difference)
  }
  return mismatch("other_text", "Another TXT record has this name. Add ours beside it.", difference)
}
