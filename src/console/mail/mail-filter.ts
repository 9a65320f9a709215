/** What `GET /v1/mailbox` is asked for. */
export interface MailQuery {
  to?: string
  from?: string
  search?: string
  since?: string
  unread?: boolean
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/**
 * Reads the line of the search field, as in the monitor: `to:ann@x.test from:b@y.test subject:receipt since:2h`, and
 * all other words are searched for. A word that is no valid filter is searched for as it is.
 */
export function readFilter(line: string, is_unread: boolean, now_ms: number): MailQuery {
  const { words, parts, ...query } = filterOf(line, now_ms)
  const search = words.length > 0 ? words.join(" ") : parts[0]?.value
  return {
    ...query,
    ...(search !== undefined && { search: search.slice(0, MOST_SEARCH) }),
    ...(is_unread && { unread: true }),
  }
}

/** Filters of the line that the server cannot follow: it looks for one part only, and these have another one. */
export function unheeded(line: string): string[] {
  const { words, parts } = filterOf(line, 0)
  return parts.slice(words.length > 0 ? 0 : 1).map(({ word }) => word)
}

/**
 * The same question about parts of addresses, for an address that looks whole while it is typed: `ann@x.co`. Undefined
 * where it has none, or where other words are searched for.
 */
export function widerQuery({ to, from, ...query }: MailQuery): MailQuery | undefined {
  const part = to ?? from
  const is_one = to === undefined || from === undefined
  if (part === undefined || !is_one || query.search !== undefined) return undefined
  return { ...query, search: part.slice(0, MOST_SEARCH) }
}

interface LineFilter extends Pick<MailQuery, "to" | "from" | "since"> {
  words: string[]
  /** Filters by a part of an address, each with the word of the line. */
  parts: { word: string; value: string }[]
}

function filterOf(line: string, now_ms: number): LineFilter {
  const filter: LineFilter = { words: [], parts: [] }
  for (const word of line.trim().split(/\s+/).filter(Boolean)) {
    const [, given = "", value = ""] = /^(to|from|since|subject):(\S+)$/i.exec(word) ?? []
    const name = given.toLowerCase()
    const since = name === "since" ? sinceOf(value, now_ms) : undefined
    if (since !== undefined) filter.since = since
    else if (name === "to" || name === "from") {
      if (WHOLE_ADDRESS.test(value)) filter[name] = value
      else filter.parts.push({ word, value })
    } else filter.words.push(name === "subject" ? value : word)
  }
  return filter
}

const MOST_SEARCH = 200

/** The server refuses an address that is still being typed: `ann@`, `ann@x`, `ann@x.`. */
const WHOLE_ADDRESS =
  /^[^\s@<>"(),:;\\[\].]+(?:\.[^\s@<>"(),:;\\[\].]+)*@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+\p{L}[\p{L}\p{N}-]*[\p{L}\p{N}]$/u

/** `90s`, `30m`, `2h`, `7d`, `1w`, or a date as of ISO 8601. */
function sinceOf(text: string, now_ms: number): string | undefined {
  const [, count = "", unit = ""] = /^(\d{1,6})([smhdw])$/i.exec(text) ?? []
  const seconds = SECONDS[unit.toLowerCase()]
  const at = seconds === undefined ? Date.parse(text) : now_ms - Number(count) * seconds * 1000
  return Number.isFinite(at) && at > 0 ? new Date(at).toISOString() : undefined
}
