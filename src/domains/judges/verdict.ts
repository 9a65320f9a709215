import type { Difference } from "../tables"

/** What one server's values for a name mean. */
export type Verdict =
  | { ok: true; mistake?: string; hint?: string }
  | {
      ok: false
      status: "mismatch" | "missing"
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
