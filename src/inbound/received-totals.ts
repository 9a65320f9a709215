import { STORED } from "../plans/stored-bytes"
import type { Bump } from "../store/counters"
import { INBOUND_COUNTER, type InboundRow } from "./tables"

export type CountedMail = Pick<InboundRow, "project_id" | "size" | "stored_bytes">

/** What a mail stores. Of an earlier version it is all of it. */
const bytesOf = ({ stored_bytes, size }: CountedMail): number => stored_bytes ?? size

/**
 * The totals of each project for mails that are made known, or with `sign` -1 for those that go. Mail that
 * is not read yet counts nowhere: its project may show only then.
 */
export const totalsOf = (mails: CountedMail[], sign: 1 | -1 = 1): Bump[] =>
  mails.flatMap((mail) => [
    { owner: mail.project_id, name: INBOUND_COUNTER, by: sign },
    { owner: mail.project_id, name: STORED.received, by: sign * bytesOf(mail) },
  ])
