interface Slip {
  mistake: string
  hint: string
  /** The text as it was most likely meant. */
  cleaned: string
}

interface Rule {
  mistake: string
  hint: string
  clean: (text: string) => string
}

const NAME_PASTED = /^\S+\s+(?:\d+\s+)?(?:IN\s+)?TXT\s+/i

/** What a copy on its way through documents, chats and forms does to a text, likeliest last. */
const RULES: Rule[] = [
  {
    mistake: "record_pasted",
    hint: "The value holds the whole line of a zone file. Enter only the part after TXT.",
    clean: (text) => text.replace(NAME_PASTED, ""),
  },
  {
    mistake: "typographic_quotes",
    hint: "The value has typographic quotes, which word processors insert. Remove them.",
    clean: (text) => text.replace(/[\u2018-\u201f\u00ab\u00bb\u2032\u2033]/g, ""),
  },
  {
    mistake: "quoted",
    hint: "The quotes became part of the value. Enter it without quotes, because the provider adds its own.",
    clean: (text) => text.replace(/"\s*"/g, "").replace(/["']/g, ""),
  },
  {
    mistake: "backslashes",
    hint: "The value has backslashes, which only zone files need. Remove them.",
    clean: (text) => text.replace(/\\/g, ""),
  },
  {
    mistake: "outer_spaces",
    hint: "The value begins or ends with a space. Remove it.",
    clean: (text) => text.replace(/^ +| +$/g, ""),
  },
  {
    mistake: "invisible_characters",
    hint: "The value has a tab, a line break or another invisible character. Type the value again.",
    clean: (text) =>
      text
        .replace(/[\p{Cc}\p{Cf}\u00a0\u2028\u2029]+/gu, " ")
        .replace(/ {2,}/g, " ")
        .trim(),
  },
]

/**
 * Finds the copying mistake in a text: the first repair after which `isMeant` accepts the text.
 * Undefined when no repair helps.
 */
export function slipOf(text: string, isMeant: (cleaned: string) => boolean): Slip | undefined {
  let cleaned = text
  let first: Rule | undefined
  for (const rule of RULES) {
    const next = rule.clean(cleaned)
    if (next === cleaned) continue
    first ??= rule
    cleaned = next
    if (isMeant(cleaned)) return { mistake: first.mistake, hint: first.hint, cleaned }
  }
  return undefined
}

/** The place of the first character in which two texts differ; -1 for equal ones. */
export function firstDifference(one: string, other: string): number {
  const longest = Math.max(one.length, other.length)
  for (let at = 0; at < longest; at++) if (one[at] !== other[at]) return at
  return -1
}

export interface TagList {
  /** In the order of the text; the first of a name counts. */
  tags: Map<string, string>
  /** Parts between semicolons without `name=value`. The empty part at the end does not count. */
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
