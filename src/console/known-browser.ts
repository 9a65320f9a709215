import { keptInTab } from "./tab-memory"

const KEY = "belfry-signed-in"

/**
 * Whether somebody signed in here and did not sign out. No script sees the cookie, so that pages which need no
 * session ask for one only then.
 */
export function mayBeSignedIn(): boolean {
  try {
    return keptInTab("key") !== undefined || localStorage.getItem(KEY) !== null
  } catch {
    return false // a browser may refuse to store anything
  }
}

/** Keeps for pages to come that this browser has a session, or that it has none any more. */
export function noteSignedIn(is_signed_in: boolean): void {
  try {
    if (is_signed_in) localStorage.setItem(KEY, "yes")
    else localStorage.removeItem(KEY)
  } catch {
    // Not kept: the reference then shows the way to sign in.
  }
}
