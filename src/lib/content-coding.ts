/**
 * Whether a client takes a coding such as `br` (RFC 9110, 12.5.3): its own entry in `Accept-Encoding` counts,
 * else that of `*`. With the weight 0 a coding is refused. Without the field nothing is compressed.
 */
export function takesCoding(accept_encoding: string | null, coding: string): boolean {
  const weights = new Map(
    (accept_encoding ?? "").split(",").map((entry): [string, number] => {
      const [name = "", ...parameters] = entry.toLowerCase().split(";")
      const [, weight = "1"] = /^\s*q=([\d.]+)/.exec(parameters.join(";")) ?? []
      return [name.trim(), Number(weight)]
    }),
  )
  return (weights.get(coding) ?? weights.get("*") ?? 0) > 0
}
