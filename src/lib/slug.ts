/** 1 to 63 of `a-z 0-9 -`, beginning and ending with a letter or digit. */
export const SLUG = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"

const MOST_CHARACTERS = 50

/** A slug from a name: `Große Küche` becomes `grosse-kuche`. Empty when nothing is left of it. */
export function slugFrom(name: string): string {
  const plain = name.replaceAll("ß", "ss").normalize("NFKD").toLowerCase()
  const dashed = plain.replace(/\p{M}/gu, "").replace(/[^a-z0-9]+/g, "-")
  return dashed.slice(0, MOST_CHARACTERS).replace(/^-+|-+$/g, "")
}
