/** What this tab keeps until it is closed. The reference reads the key under the same name. */
const NAMES = { key: "belfry-key", project: "belfry-project", account: "belfry-account" }

type Kept = keyof typeof NAMES

export function keptInTab(what: Kept): string | undefined {
  try {
    return sessionStorage.getItem(NAMES[what]) ?? undefined
  } catch {
    return undefined // the browser stores nothing; what is signed in holds until the page is left
  }
}

export function keepInTab(what: Kept, value: string): void {
  try {
    sessionStorage.setItem(NAMES[what], value)
  } catch {
    // As above.
  }
}

export function forgetInTab(what: Kept): void {
  try {
    sessionStorage.removeItem(NAMES[what])
  } catch {
    // As above.
  }
}
