import { and, eq, gt, gte, inArray, isNotNull, lte, sql } from "drizzle-orm"
import { firstIdAt } from "../core/ids"
import { millisFrom } from "../core/time"
import type { ProjectSettings } from "../identity/tables"
import { lockFor } from "../messages/audience-decisions"
import { messages } from "../messages/tables"
import { idList, isAmong } from "../store/columns"
import { countRows, rowForUpdate, SKEW_MS } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { type AudienceMember, audienceOf } from "../subscribers/audience"
import type { DecisionInput } from "../subscribers/decision"
import { takenInBy } from "../subscribers/merged-subscribers"
import { topicMembers, topics } from "../topics/tables"
import type { FanOutKind, FanOutPartRow, FanOutRow } from "./tables"

/** Recipients of one transaction: it holds the writer of SQLite for some 10 ms. */
export const CHUNK = 128

/** One of an audience. Its number is its position in it. */
interface AudiencePosition {
  number: number
  subscriber_id: string
}

/** A range of an audience: what is above `cursor`, up to `until`. */
interface AudienceRange {
  cursor: number
  until: number
}

interface AudienceSource {
  /** Fixes the audience: those of this moment, and no later ones. Undefined: it is no more. */
  fix(tx: Tx, fan_out: FanOutRow): Promise<{ size: number; last_number: number } | undefined>
  /** The next `CHUNK` of a range, in the order of their numbers. */
  next(db: Reader, fan_out: FanOutRow, range: AudienceRange): Promise<AudiencePosition[]>
  /** The topic whose preferences count for it, or none. Undefined: the audience is no more. */
  topicOf(db: Reader, fan_out: FanOutRow): Promise<{ topic: DecisionInput["topic"] } | undefined>
  gone: string
}

const topicAudience: AudienceSource = {
  async fix(tx, { topic_id, intent }) {
    const topic = await rowForUpdate(tx, topics, topic_id ?? "")
    if (!topic) return undefined
    const excluded = await countMembers(tx, topic.id, intent.exclude)
    return { size: topic.subscriber_count - excluded, last_number: topic.last_number }
  },
  next: async (db, { topic_id }, { cursor, until }) =>
    topic_id === null ? [] : membersBetween(db, { topic_id, cursor, until }),
  async topicOf(db, { topic_id }) {
    const [topic] = topic_id === null ? [] : await findTopic(db, { id: topic_id })
    return topic && { topic: { key: topic.key, default: topic.default } }
  },
  gone: "topic_not_found",
}

const SOURCES: Record<FanOutKind, AudienceSource> = { publish: topicAudience }

export const audienceSourceOf = ({ kind }: Pick<FanOutRow, "kind">): AudienceSource => SOURCES[kind]

async function countMembers(db: Reader, topic_id: string, subscriber_ids: string[]) {
  if (subscriber_ids.length === 0) return 0
  const theirs = and(
    eq(topicMembers.topic_id, topic_id),
    inArray(topicMembers.subscriber_id, subscriber_ids),
  )
  return countRows(db, topicMembers, theirs)
}

// A publish has thousands of chunks, so what each of them reads is prepared.

const findTopic = prepared({ id: topics.id }, (db: Reader, slot) =>
  db.select().from(topics).where(eq(topics.id, slot.id)),
)

const membersBetween = prepared(
  {
    topic_id: topicMembers.topic_id,
    cursor: topicMembers.number,
    until: topicMembers.number,
  },
  (db: Reader, slot) =>
    db
      .select({ number: topicMembers.number, subscriber_id: topicMembers.subscriber_id })
      .from(topicMembers)
      .where(
        and(
          eq(topicMembers.topic_id, slot.topic_id),
          gt(topicMembers.number, slot.cursor),
          lte(topicMembers.number, slot.until),
        ),
      )
      .orderBy(topicMembers.number)
      .limit(CHUNK),
)

export interface WalkedRecipient {
  number: number
  member: AudienceMember
}

interface WalkedRange {
  members: AudiencePosition[]
  /** Of these, the ones that may be written to: neither excluded nor deleted, nor written to before. */
  found: WalkedRecipient[]
  /** No member of the part is behind them. */
  is_last: boolean
}

/**
 * The next members of a part, at most `CHUNK`. Their subscribers stay until the transaction ends. Where a
 * merge gives a membership to another subscriber at this moment, the range ends before it.
 */
export async function nextRange(
  tx: Tx,
  fan_out: FanOutRow,
  part: FanOutPartRow,
  settings: ProjectSettings,
): Promise<WalkedRange> {
  const { project_id } = fan_out
  const read = () => audienceSourceOf(fan_out).next(tx, fan_out, part)
  const members = await read()
  const ids = members.map(({ subscriber_id }) => subscriber_id)
  const known = await audienceOf(tx, project_id, ids, lockFor(settings))
  const is_complete = members.every(({ subscriber_id }) => known.has(subscriber_id))
  const end = is_complete ? members.length : unmoved(members, await read())
  const kept = members.slice(0, end)
  const passed = await excludedAmong(tx, fan_out, ids)
  for (const id of await writtenTo(tx, fan_out, ids)) passed.add(id)
  const found: WalkedRecipient[] = []
  for (const { number, subscriber_id } of kept) {
    const member = passed.has(subscriber_id) ? undefined : known.get(subscriber_id)
    if (member) found.push({ number, member })
  }
  return { members: kept, found, is_last: members.length < CHUNK && end === members.length }
}

/** The excluded subscribers, and those of the ids that took in an excluded one by a merge. */
async function excludedAmong(
  tx: Tx,
  { project_id, intent: { exclude } }: FanOutRow,
  ids: string[],
) {
  const passed = new Set(exclude)
  if (exclude.length === 0) return passed
  for (const { id, subscriber_id } of await takenInBy(tx, { project_id, ids })) {
    if (passed.has(id)) passed.add(subscriber_id)
  }
  return passed
}

/** How many of the members, from the first on, are the same in a second look, or left meanwhile. */
function unmoved(members: WalkedRange["members"], again: WalkedRange["members"]): number {
  const now = new Map(again.map(({ number, subscriber_id }) => [number, subscriber_id]))
  const isMoved = ({ number, subscriber_id }: WalkedRange["members"][number]) =>
    (now.get(number) ?? subscriber_id) !== subscriber_id
  const first = members.findIndex(isMoved)
  return first === -1 ? members.length : first
}

/** Those that have a message of the fan-out already: a merge may have given it to them. */
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
