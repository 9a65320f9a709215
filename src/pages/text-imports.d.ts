/**
 * Pages of docs/ are imported as files (`with { type: "file" }`): the binary carries them, and nothing
 * of them is in memory before somebody reads one.
 */
declare module "*.md" {
  /** Its path: in the sources, or in the binary. */
  const path: string
  export default path
}

/** The design tokens are imported as text. */
declare module "*.css" {
  const text: string
  export default text
}
