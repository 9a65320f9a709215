export interface TagList {
  /** In the order of the text; the first of a name counts. */
  tags: Map<string, string>
  /** Parts between semicolons that are no `name=value`; the empty one at the end is none. */
  strange: string[]
  /** A semicolon follows another one, or begins the text. */
  has_empty: boolean
}

/** The `name=value; name=value` of DKIM and DMARC (RFC 6376 3.2, RFC 7489 6.4). Names keep their case. */
export function parseTags(text: string): TagList {
  const parts = text.split(";").map((part) => part.trim())
  if (parts.at(-1) === "") parts.pop()
  const tags = new Map<string, string>()
  const strange: string[] = []
  for (const part of parts) {
    const found = /^([A-Za-z][A-Za-z0-9_]*)\s*=\s*([\s\S]*)$/.exec(part)
    if (!found) {
      if (part !== "") strange.push(part)
    } else if (!tags.has(found[1] ?? "")) tags.set(found[1] ?? "", found[2] ?? "")
  }
  return { tags, strange, has_empty: parts.includes("") }
}
