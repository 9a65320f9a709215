type Value = string | number | undefined

/** Every name a query may have. What is not listed never gets into an address, which logs keep. */
const query_names = [
  "action",
  "actor_id",
  "after",
  "batch_id",
  "before",
  "category",
  "created_after",
  "created_before",
  "cursor",
  "domain",
  "format",
  "from",
  "kind",
  "event_id",
  "event_type",
  "forward",
  "from",
  "key_id",
  "limit",
  "path",
  "per_page",
  "period",
  "project_id",
  "request_id",
  "search",
  "since",
  "status",
  "subject",
  "tag",
  "target_type",
  "to",
  "types",
  "wait",
  "window",
] as const

export type Query = { [Name in (typeof query_names)[number]]?: Value }

/** `?status=sent`, or nothing. Throws on a name that is not listed. */
export function searchOf(query: Query): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (!query_names.some((known) => known === name)) throw new Error(`${name}: no query field`)
    if (value !== undefined) search.set(name, String(value))
  }
  return search.size === 0 ? "" : `?${search}`
}
