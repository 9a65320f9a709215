import { STORED } from "../plans/stored-bytes"
import type { Changes } from "../store/counters"
import { INBOUND_COUNTER, type InboundRow } from "./tables"

export type CountedMail = Pick<InboundRow, "project_id" | "size" | "stored_bytes">

/** What a mail stores. Of an earlier version it is all of it. */
const bytesOf = ({ stored_bytes, size }: CountedMail): number => stored_bytes ?? size

/**
 * The totals of each project for mails that are made known, or with `sign` -1 for those that go. Mail that
 * is not read yet counts nowhere: its project may show only then.
 */
export function totalsOf(mails: CountedMail[], sign: 1 | -1 = 1): Map<string, Changes> {
  const groups = Map.groupBy(mails, ({ project_id }) => project_id)
  const totals = [...groups].map(([id, list]): [string, Changes] => {
    const bytes = list.reduce((sum, mail) => sum + bytesOf(mail), 0)
    const changes = [
      [INBOUND_COUNTER, sign * list.length],
      [STORED.received, sign * bytes],
    ] as const
    return [id, new Map(changes)]
  })
  return new Map(totals)
}
