import { and, eq, gt, inArray, lte, sql } from "drizzle-orm"
import { holdById } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import type { DecisionInput } from "../subscribers/decision"
import { topicMembers, topics } from "../topics/tables"
import type { FanOutKind, FanOutRow } from "./tables"

/** Recipients of one transaction: it holds the writer of SQLite for some 10 ms. */
export const CHUNK = 128

/** One of an audience. Its number is its place in it. */
export interface AudiencePlace {
  number: number
  subscriber_id: string
}

/** A stretch of an audience: what is above `cursor`, up to `until`. */
export interface AudienceStretch {
  cursor: number
  until: number
}

/** The audience as it is when a fan-out begins. */
interface FixedAudience {
  /** How many they are. */
  size: number
  last_number: number
}

/** The audience of the fan-outs of one kind. */
interface AudienceSource {
  /** Fixes the audience: those of this moment, and no later ones. Undefined: it is no more. */
  fix(tx: Tx, fan_out: FanOutRow): Promise<FixedAudience | undefined>
  /** The next `CHUNK` of a stretch, in the order of their numbers. */
  next(db: Reader, fan_out: FanOutRow, stretch: AudienceStretch): Promise<AudiencePlace[]>
  /** The topic whose preferences count for it, or none. Undefined: the audience is no more. */
  topicOf(db: Reader, fan_out: FanOutRow): Promise<{ topic: DecisionInput["topic"] } | undefined>
  /** The code of a fan-out that fails because its audience is no more. */
  gone: string
}

/** The members of a topic, in the order of their joining. */
const topicAudience: AudienceSource = {
  async fix(tx, { topic_id, intent }) {
    const topic = await holdById(tx, topics, topic_id ?? "")
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
  const [row] = await db.select({ all: sql<number>`count(*)` }).from(topicMembers).where(theirs)
  return Number(row?.all ?? 0)
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
