import { fail } from "../core/errors"
import type { Caller } from "../identity/caller"

/**
 * Throws 403 `forbidden` where somebody of the project acts as the user: what proves a user stays the user's own, and
 * nothing renews the session.
 */
export function refuseImpersonated({ end_user }: Pick<Caller, "end_user">): void {
  if (!end_user?.impersonated) return
  const text = "Somebody acts as the user here. Only the user may do this."
  fail("forbidden", text, { reason: "impersonated" })
}
