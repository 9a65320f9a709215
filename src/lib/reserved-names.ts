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

/** What `reservedProblem` refuses, as JSON Schema says it. */
export const NO_PATH_NAME = { enum: [...RESERVED_NAMES, ".", ".."] }

/**
 * What is wrong with a name that no path can hold; undefined for every other one. Steps of a path are resolved
 * before a request is sent, however they are encoded (URL Standard, 4.4).
 */
export function reservedProblem(name: string): string | undefined {
  if (name === "." || name === "..") {
    return `A URL cannot hold ${name} as a name, because it is a step of its path. Choose another name.`
  }
  return RESERVED_NAMES.has(name)
    ? `${name} is a part of other paths of the API. Choose another name.`
    : undefined
}
