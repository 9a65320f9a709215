/** What a line of a mail is: the colors of the source follow from it. */
export type SourceKind = "name" | "more" | "boundary" | "encoded" | "body"

export interface SourceLine {
  kind: SourceKind
  /** Of a header: its name with the colon; otherwise nothing. */
  name: string
  text: string
}

/**
 * The lines of a mail (RFC 5322, 2045, 2046): headers with their continuations, boundaries, the headers of
 * parts, and bodies. Bodies in base64 are told apart, because nobody reads them.
 */
export function sourceLines(source: string): SourceLine[] {
  const boundaries = new Set(
    [...source.matchAll(/boundary=(?:"([^"\r\n]+)"|([^\s;"]+))/gi)].map(
      ([, quoted, plain]) => quoted ?? plain ?? "",
    ),
  )
  let is_head = true
  let is_encoded = false
  return source.split(/\r?\n/).map((text): SourceLine => {
    if (isBoundary(text, boundaries)) {
      is_head = !text.endsWith("--")
      is_encoded = false
      return { kind: "boundary", name: "", text }
    }
    if (!is_head) return { kind: is_encoded ? "encoded" : "body", name: "", text }
    if (text === "") {
      is_head = false
      return { kind: "body", name: "", text }
    }
    if (/^content-transfer-encoding:\s*base64/i.test(text)) is_encoded = true
    const [, name = "", rest = ""] = /^([!-9;-~]+:)(.*)$/.exec(text) ?? []
    if (name === "") return { kind: "more", name: "", text }
    return { kind: "name", name, text: rest }
  })
}

function isBoundary(line: string, boundaries: Set<string>): boolean {
  if (!line.startsWith("--")) return false
  const name = line.slice(2).trimEnd()
  return boundaries.has(name) || (name.endsWith("--") && boundaries.has(name.slice(0, -2)))
}
