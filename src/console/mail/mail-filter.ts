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
 * Reads the line of the search field, as in the monitor: `to:ann@x.test from:b@y.test since:2h`, and all
 * other words are searched for. A word that is no valid filter is searched for as it is.
 */
export function readFilter(line: string, is_unread: boolean, now_ms: number): MailQuery {
  const query: MailQuery = {}
  const words: string[] = []
  for (const word of line.trim().split(/\s+/).filter(Boolean)) {
    const [, name = "", value = ""] = /^(to|from|since):(\S+)$/i.exec(word) ?? []
    const since = name.toLowerCase() === "since" ? sinceOf(value, now_ms) : undefined
    if (since !== undefined) query.since = since
    else if (/^to$/i.test(name) && WHOLE_ADDRESS.test(value)) query.to = value
    else if (/^from$/i.test(name) && WHOLE_ADDRESS.test(value)) query.from = value
    else words.push(word)
  }
  if (words.length > 0) query.search = words.join(" ").slice(0, MOST_SEARCH)
  if (is_unread) query.unread = true
  return query
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
