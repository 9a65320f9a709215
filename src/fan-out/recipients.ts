import { and, eq, gte, isNotNull, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import type { ProjectSettings } from "../identity/tables"
import { lockFor } from "../messages/audience-decisions"
import { messages } from "../messages/tables"
import { idList, isAmong } from "../store/dialect"
import { prepared } from "../store/statements"
import type { Tx } from "../store/store"
import { type AudienceMember, audienceOf } from "../subscribers/audience"
import { takenInBy } from "../subscribers/merged-subscribers"
import { type AudiencePlace, audienceSourceOf, CHUNK } from "./audience-source"
import type { FanOutPartRow, FanOutRow } from "./tables"

export interface WalkedRecipient {
  number: number
  member: AudienceMember
}

/** The next stretch of a part. */
export interface Stretch {
  /** The audience, in the order of their numbers. */
  members: AudiencePlace[]
  /** Of these, the ones that may be written to: neither excluded nor deleted, nor written to before. */
  found: WalkedRecipient[]
  /** No member of the part is behind them. */
  is_last: boolean
}

/**
 * The next members of a part, at most `CHUNK`. Their subscribers stay until the transaction ends. Where a
 * merge gives a membership to another subscriber at this moment, the stretch ends before it.
 */
export async function nextStretch(
  tx: Tx,
  fan_out: FanOutRow,
  part: FanOutPartRow,
  settings: ProjectSettings,
): Promise<Stretch> {
  const { project_id } = fan_out
  const read = () => audienceSourceOf(fan_out).next(tx, fan_out, part)
  const members = await read()
  const ids = members.map(({ subscriber_id }) => subscriber_id)
  const known = await audienceOf(tx, project_id, ids, lockFor(settings))
  const is_complete = members.every(({ subscriber_id }) => known.has(subscriber_id))
  const end = is_complete ? members.length : unmoved(members, await read())
  const kept = members.slice(0, end)
  const passed = await excludedAmong(tx, { project_id, exclude: fan_out.intent.exclude, ids })
  for (const id of await writtenTo(tx, fan_out, ids)) passed.add(id)
  const found: WalkedRecipient[] = []
  for (const { number, subscriber_id } of kept) {
    const member = passed.has(subscriber_id) ? undefined : known.get(subscriber_id)
    if (member) found.push({ number, member })
  }
  return { members: kept, found, is_last: members.length < CHUNK && end === members.length }
}

interface ExcludedAsked {
  project_id: string
  exclude: string[]
  ids: string[]
}

/** The excluded subscribers, and those of the ids that took in an excluded one by a merge. */
async function excludedAmong(tx: Tx, { project_id, exclude, ids }: ExcludedAsked) {
  const passed = new Set(exclude)
  if (exclude.length === 0) return passed
  for (const { id, subscriber_id } of await takenInBy(tx, { project_id, ids })) {
    if (passed.has(id)) passed.add(subscriber_id)
  }
  return passed
}

/** How many of the members, from the first on, are the same in a second look, or left meanwhile. */
function unmoved(members: Stretch["members"], again: Stretch["members"]): number {
  const now = new Map(again.map(({ number, subscriber_id }) => [number, subscriber_id]))
  const isMoved = ({ number, subscriber_id }: Stretch["members"][number]) =>
    (now.get(number) ?? subscriber_id) !== subscriber_id
  const first = members.findIndex(isMoved)
  return first === -1 ? members.length : first
}

/** The clocks of two nodes differ by less. */
const SKEW_MS = 60_000

/**
 * The subscribers that have a message of the fan-out already: a merge gives the messages of one subscriber to
 * another, whose own turn may be yet to come.
 */
async function writtenTo(
  tx: Tx,
  { id, project_id, created_at }: Pick<FanOutRow, "id" | "project_id" | "created_at">,
  ids: string[],
): Promise<string[]> {
  const since = firstIdAt(millisFrom(created_at) - SKEW_MS)
  const rows = await findWritten(tx, { project_id, ids, since, fan_out_id: id })
  return rows.flatMap((row) => row.subscriber_id ?? [])
}

const { project_id, subscriber_id, fan_out_id } = messages

const findWritten = prepared(
  { project_id, ids: idList, since: messages.id, fan_out_id },
  (tx: Tx, slot) =>
    tx
      .select({ subscriber_id })
      .from(messages)
      .where(
        and(
          eq(project_id, slot.project_id),
          isAmong(tx, subscriber_id, slot.ids),
          isNotNull(subscriber_id),
          gte(messages.id, slot.since),
          // Not by the index of the fan-out, in which all of its messages are.
          sql`coalesce(${fan_out_id}, ${fan_out_id}) = ${slot.fan_out_id}`,
        ),
      ),
)
