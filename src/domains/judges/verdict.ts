import type { Difference } from "../tables"

/** What one server's values for a name mean. */
export type Verdict =
  | { ok: true; mistake?: string; hint?: string }
  | {
      ok: false
      /** `pending`: what decides it could not be asked for. */
      status: "mismatch" | "missing" | "pending"
      mistake: string
      hint: string
      difference?: Difference | undefined
    }

export const mismatch = (mistake: string, hint: string, difference?: Difference): Verdict => ({
  ok: false,
  status: "mismatch",
  mistake,
  hint,
  difference,
})

export const missing = (mistake: string, hint: string): Verdict => ({
  ok: false,
  status: "missing",
  mistake,
  hint,
})

/** What the record leads to has to be known first: it neither counts nor is it lost by that. */
export const undecided = (mistake: string, hint: string): Verdict => ({
  ok: false,
  status: "pending",
  mistake,
  hint,
})
