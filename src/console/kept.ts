/** The tab keeps these until it is closed, the browser the others. The reference reads the key under the same name. */
const OF_TAB = { key: "belfry-key", project: "belfry-project", account: "belfry-account" }
const OF_BROWSER = {
  signed_in: "belfry-signed-in",
  theme: "belfry-theme",
  language: "belfry-docs-language",
}

const NAMES = { ...OF_TAB, ...OF_BROWSER }

type Kept = keyof typeof NAMES

const storageOf = (what: Kept) => (what in OF_TAB ? sessionStorage : localStorage)

export function kept(what: Kept): string | undefined {
  try {
    return storageOf(what).getItem(NAMES[what]) ?? undefined
  } catch {
    return undefined // the browser stores nothing
  }
}

/** Undefined forgets it. Where the browser stores nothing, the value holds until the page is left. */
export function keep(what: Kept, value: string | undefined): void {
  try {
    if (value === undefined) storageOf(what).removeItem(NAMES[what])
    else storageOf(what).setItem(NAMES[what], value)
  } catch {
    // As above.
  }
}

/**
 * Whether somebody signed in here and did not sign out. No script sees the cookie, so that pages which need no
 * session ask for one only then.
 */
export const mayBeSignedIn = (): boolean =>
  kept("key") !== undefined || kept("signed_in") !== undefined

/** Keeps for pages to come that this browser has a session, or that it has none any more. */
export const noteSignedIn = (is_signed_in: boolean): void =>
  keep("signed_in", is_signed_in ? "yes" : undefined)
