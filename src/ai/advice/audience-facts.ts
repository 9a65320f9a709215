import { and, count, desc, eq, lt, sql } from "drizzle-orm"
import { firstIdAt } from "../../core/ids"
import { deviceCounts } from "../../devices/find-device"
import type { Caller } from "../../identity/caller"
import type { AudienceChannel } from "../../lib/preferences"
import { decideAll } from "../../messages/audience-decisions"
import { messages } from "../../messages/tables"
import { readHeavy } from "../../store/heavy-reads"
import type { Reader } from "../../store/store"
import { audienceOf } from "../../subscribers/audience"
import { subscribers } from "../../subscribers/tables"
import { type TopicRow, topicMembers } from "../../topics/tables"
import { messageTracking } from "../../tracking/tables"

/** Enough for a share in percent, and no more than two pages of a list. */
const SAMPLE = 200

/**
 * Asks for the latest members what a publish asks for each recipient: of the topic, or of all subscribers. Quiet hours
 * and the cap only put a message off.
 */
export async function sampleAudience(
  db: Reader,
  { project_id, project_settings }: Caller,
  { channel, topic, at }: { channel: AudienceChannel; topic: TopicRow | null; at: number },
) {
  const { id } = subscribers
  const { topic_id, number, subscriber_id } = topicMembers
  const all = db.select({ id }).from(subscribers).where(eq(subscribers.project_id, project_id))
  const some = db.select({ id: subscriber_id }).from(topicMembers)
  const latest = topic
    ? some.where(eq(topic_id, topic.id)).orderBy(desc(number))
    : all.orderBy(desc(id))
  const ids = (await latest.limit(SAMPLE)).map((row) => row.id)
  const members = [...(await audienceOf(db, project_id, ids)).values()]
  const names = channel === "push" ? members.map((one) => one.external_id) : []
  const owners = await deviceCounts(db, project_id, names)
  const reached = members.flatMap((subscriber) => {
    const { email_key, phone, external_id } = subscriber
    const address = channel === "email" ? email_key : channel === "sms" ? phone : null
    const is_reached =
      channel === "push" ? owners.has(external_id) : channel === "in_app" || address
    const stream = "broadcast" as const
    return is_reached ? [{ stream, category: null, subscriber, address, topic, channel, at }] : []
  })
  const settings = { ...project_settings, frequency_cap: null, quiet_hours: null }
  const decisions = await decideAll(db, { id: project_id, settings }, reached)
  const refused = decisions.filter(({ is_allowed }) => !is_allowed).length
  return { sampled: members.length, unreachable: members.length - reached.length, refused }
}

const DAY_MS = 86_400_000
const MOST_EMAILS = 5_000

/**
 * The latest 5,000 emails by the hour of the day (0 to 23, UTC) in which they were accepted, and how many of them a
 * person opened. Those of the last day are left out, because people have yet to open them.
 */
export const openHours = (db: Reader, project: string, at: number) =>
  readHeavy(db, project, (read) =>
    read((reader) => {
      const { id, project_id, channel, created_at } = messages
      const old = lt(id, firstIdAt(at - DAY_MS))
      const latest = reader
        .select({ created_at, opened_at: messageTracking.opened_at })
        .from(messages)
        .leftJoin(messageTracking, eq(messageTracking.message_id, id))
        .where(and(eq(project_id, project), eq(channel, "email"), old))
        .orderBy(desc(id))
        .limit(MOST_EMAILS)
        .as("latest")
      const hour = sql<number>`${latest.created_at} / 3600000 % 24`.mapWith(Number)
      const fields = { hour, sent: count(), opened: count(latest.opened_at) }
      return reader.select(fields).from(latest).groupBy(hour)
    }),
  )
