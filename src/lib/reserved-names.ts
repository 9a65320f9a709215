/** Literal segments of paths, which no key and no external id may be (contract 00, section 2). */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  "batch",
  "bulk",
  "categories",
  "external",
  "preferences",
  "stats",
  "user",
])

/** What is wrong with such a name. */
export const reservedName = (name: string): string =>
  `${name} is a part of other paths of the API. Choose another name.`
