const MOST_CHARACTERS = 1000

/**
 * At most 1,000 characters of what somebody else said, fit for either database: no NUL, and no half
 * of a surrogate pair.
 */
export function short(text: string): string
export function short(text: string | null): string | null
export function short(text: string | null): string | null {
  return text === null ? null : text.replaceAll("\0", "").slice(0, MOST_CHARACTERS).toWellFormed()
}
