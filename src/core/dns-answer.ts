import { Packet } from "dns2"
import type { Kind } from "./dns-wire"

export type Row = Packet["answers"][number]

/** What of an answer is about the name that was asked for. */
export interface Answered {
  rows: Row[]
  /** Where the aliases lead, as far as the answer tells; null where the name is none. */
  alias: string | null
}

/** A name as it is compared: lower case, without a dot at the end. */
export const bareName = (name: string): string => name.toLowerCase().replace(/\.$/, "")

/**
 * The name's own records, or those at the end of its aliases. Whatever else an answer carries counts
 * for nothing (RFC 2181 5.4.1). The servers of an alias are not those of the name (RFC 1034 3.6.2),
 * so for NS and CNAME no alias is followed.
 */
export function answered({ answers }: Packet, name: string, kind: Kind): Answered {
  const stays = kind === "NS" || kind === "CNAME"
  const seen = new Set<string>()
  let at = bareName(name)
  for (;;) {
    const rows = answers.filter((row) => isOf(row, at, kind))
    const next = answers.find((row) => isOf(row, at, "CNAME"))?.domain
    seen.add(at)
    const is_end = rows.length > 0 || next === undefined || seen.has(bareName(next))
    if (stays) return { rows, alias: next === undefined ? null : bareName(next) }
    if (is_end) return { rows, alias: seen.size > 1 ? at : null }
    at = bareName(next)
  }
}

const isOf = (row: Row, name: string, kind: Kind) =>
  row.type === Packet.TYPE[kind] && bareName(row.name) === name

/**
 * The zone whose authority says that there is nothing: the owner of the SOA record in a negative
 * answer (RFC 2308 2.1 and 2.2), `""` for the root. Null where nobody said so.
 */
export function deniedBy({ answers, authorities }: Packet): string | null {
  if (answers.length > 0) return null
  const soa = authorities.find(({ type }) => type === Packet.TYPE.SOA)
  return soa ? bareName(soa.name) : null
}
