export const BLOCKS: ReadonlySet<string> = new Set(["if", "unless", "each", "with"])

/** Helpers that compute a value. */
export const VALUE_HELPERS: ReadonlySet<string> = new Set([
  "eq",
  "ne",
  "gt",
  "lt",
  "gte",
  "lte",
  "and",
  "or",
  "not",
  "default",
  "upper",
  "lower",
  "capitalize",
  "truncate",
  "date",
  "number",
  "currency",
  "plural",
  "json",
  "urlencode",
  "link",
])
