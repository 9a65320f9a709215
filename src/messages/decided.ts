import { and, eq } from "drizzle-orm"
import { newId } from "../core/ids"
import { isoFrom, millis, millisFrom } from "../core/time"
import { withDefaults } from "../identity/caller"
import { type ProjectSettings, projects } from "../identity/tables"
import { gathered } from "../store/batcher"
import { cached } from "../store/cached"
import type { Reader, Tx } from "../store/store"
import { type AudienceMember, audienceOf, heirsIncluded } from "../subscribers/audience"
import type { DecisionReason, SendDecision } from "../subscribers/decision"
import { topics } from "../topics/tables"
import { type AskingProject, decideAll, lockFor, type MessageQuery } from "./audience-decisions"
import { asksAudience } from "./send-fields"
import { isOneSend, type Message } from "./status-changes"
import type { Envelope, EnvelopeDecision, MessageRefusal, NewMessage } from "./tables"

/**
 * The messages as the decision about their recipients leaves them (contract 43, section 2), in the
 * transaction that accepts them: one that may not go out ends at once, and quiet hours move its time.
 * Entries of which nothing is asked stay as they are.
 */
export async function decided(tx: Tx, entries: AskingEntry[]): Promise<NewMessage[]> {
  const asking = entries.filter(({ asking }) => asking !== undefined)
  const answers = new Map<AskingEntry, NewMessage>()
  const projects = Map.groupBy(asking, ({ message }) => message.project_id)
  for (const [id, ours] of [...projects].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const settings = ours[0]?.asking
    if (!settings) continue
    const messages = ours.map(({ message }) => message)
    const members = await heirsIncluded(tx, id, subscribersOf(messages), lockFor(settings))
    const decisions = await decisionsOf(tx, { id, settings }, messages, members)
    for (const [at, entry] of ours.entries()) {
      const decision = decisions[at]
      const message = ofHeir(entry.message, members)
      if (decision) answers.set(entry, asDecided(message, decision))
    }
  }
  return entries.map((entry) => answers.get(entry) ?? entry.message)
}

interface AskingEntry {
  message: NewMessage
  asking?: ProjectSettings | undefined
}

/** A subscriber that was merged since the request named it: the message is for the one that was kept. */
function ofHeir(message: NewMessage, members: Members): NewMessage {
  const { id = null } = members.get(message.subscriber_id ?? "") ?? {}
  return id === null || id === message.subscriber_id ? message : { ...message, subscriber_id: id }
}

/** The status reason of a message whose subscriber was deleted before it left. */
export const DELETED = "subscriber_not_found"

/** What is decided of a message: by a row of the table, or by none where its subscriber was deleted. */
interface MessageDecision extends Omit<SendDecision, "reason"> {
  reason: DecisionReason | typeof DELETED | null
}

const deleted: MessageDecision = {
  row: 0,
  is_allowed: false,
  reason: DELETED,
  deferred_until: null,
}

type Question = Pick<Message, "project_id" | "channel" | "stream" | "address" | "envelope"> &
  Pick<NewMessage, "subscriber_id" | "category" | "scheduled_at"> &
  Partial<Pick<Message, "batch_id">>

const subscribersOf = (messages: Pick<Question, "subscriber_id">[]): string[] =>
  messages.flatMap(({ subscriber_id }) => subscriber_id ?? [])

type Members = ReadonlyMap<string, AudienceMember>

/** In the order of the messages. `at_send` names the message: only those before it count for its cap. */
async function decisionsOf(
  db: Reader,
  project: AskingProject,
  messages: Question[],
  members: Members,
  at_send: (place: number) => Pick<MessageQuery, "message_id"> = () => ({}),
): Promise<MessageDecision[]> {
  const asked: { place: number; question: MessageQuery }[] = []
  for (const [place, message] of messages.entries()) {
    const subscriber = members.get(message.subscriber_id ?? "") ?? null
    if (message.subscriber_id != null && !subscriber) continue
    const question = await questionOf(db, project.id, message, subscriber)
    asked.push({ place, question: { ...question, ...at_send(place) } })
  }
  const list = asked.map(({ question }) => question)
  const decisions = list.length > 0 ? await decideAll(db, project, list) : []
  const byPlace = new Map(asked.map(({ place }, nth) => [place, decisions[nth]]))
  return messages.map((_, place) => byPlace.get(place) ?? deleted)
}

async function questionOf(
  db: Reader,
  project_id: string,
  { channel, stream, address, envelope, batch_id, ...message }: Question,
  subscriber: AudienceMember | null,
): Promise<MessageQuery> {
  const { topic, ignores_preferences = false } = envelope ?? NOTHING
  return {
    ...{ subscriber, address, channel, stream, ignores_preferences },
    ...(batch_id != null && isOneSend(channel) && { send: batch_id }),
    category: message.category ?? envelope?.category ?? null,
    topic: topic === undefined ? null : await topicOf(db, project_id, topic),
    at: Math.max(millis(), millisFrom(message.scheduled_at ?? isoFrom(0))),
  }
}

const NOTHING: Pick<Envelope, "topic" | "ignores_preferences"> = {}

/**
 * The same question once more before a message leaves, by what is true now. Messages that are handled
 * together ask together. Ask it only of those that `asksAudience` names.
 */
export const decidedAtSend = gathered<Message, MessageDecision | undefined>(
  async (db, messages) => {
    const answers = new Map<Message, MessageDecision>()
    for (const [id, ours] of Map.groupBy(messages, ({ project_id }) => project_id)) {
      const settings = await settingsOf(db, id)
      const members = await heirsIncluded(db, id, subscribersOf(ours))
      const decisions = await decisionsOf(db, { id, settings }, ours, members, (place) => ({
        message_id: ours[place]?.id ?? newId(),
      }))
      for (const [at, message] of ours.entries()) {
        const decision = decisions[at]
        if (decision) answers.set(message, decision)
      }
    }
    return messages.map((message) => answers.get(message))
  },
)

const TRUSTED_MS = 1000

const settingsByProject = cached<ProjectSettings>({ tables: ["projects"] })

const settingsOf = (db: Reader, id: string) =>
  settingsByProject(
    db,
    id,
    async () => {
      const found = db.select({ settings: projects.settings }).from(projects)
      const [row] = await found.where(eq(projects.id, id))
      return withDefaults(row?.settings ?? {})
    },
    TRUSTED_MS,
  )

const defaultsOfTopics = cached<"on" | "off">({ tables: ["topics"] })

/** A topic that was deleted meanwhile excludes nobody by its default. */
async function topicOf(db: Reader, project_id: string, key: string) {
  const read = async () => {
    const ours = and(eq(topics.project_id, project_id), eq(topics.key, key))
    const [row] = await db.select({ default: topics.default }).from(topics).where(ours)
    return row?.default ?? "on"
  }
  return { key, default: await defaultsOfTopics(db, `${project_id} ${key}`, read, TRUSTED_MS) }
}

/** What would be decided of a message now. Nothing is held, and nothing counts. */
export async function foreseen(
  db: Reader,
  settings: ProjectSettings,
  message: Question,
): Promise<MessageDecision | undefined> {
  const { project_id: id } = message
  const members = await audienceOf(db, id, subscribersOf([message]))
  const unwritten = () => ({ message_id: newId() })
  const [decision] = await decisionsOf(db, { id, settings }, [message], members, unwritten)
  return decision
}

/**
 * What becomes of a message that waits and is given this time: quiet hours move it, too. One that may not
 * go out as things are keeps the time, because it is asked again before it leaves.
 */
export async function rescheduled(
  tx: Tx,
  message: Message,
): Promise<Pick<Message, "scheduled_at"> & Partial<Pick<Message, "envelope">>> {
  const { scheduled_at, envelope } = message
  const decision = asksAudience(message) ? await decidedAtSend(tx, message) : undefined
  if (!decision) return { scheduled_at }
  const { is_allowed, deferred_until } = decision
  const known = is_allowed ? decision : envelope?.decision // the earlier one, but for its time
  return {
    scheduled_at: deferred_until ?? scheduled_at,
    ...(known && { envelope: withDecision(envelope, { ...known, deferred_until }) }),
  }
}

export const keptOf = ({ row, reason, deferred_until }: EnvelopeDecision): EnvelopeDecision => ({
  row,
  reason,
  deferred_until,
})

const withDecision = (envelope: Envelope | null, decision: EnvelopeDecision): Envelope | null =>
  envelope && { ...envelope, decision: keptOf(decision) }

function asDecided(message: NewMessage, decision: MessageDecision): NewMessage {
  const { deferred_until, is_allowed } = decision
  const envelope = withDecision(message.envelope, decision)
  if (!is_allowed) return { ...message, envelope, refused: refusalOf(decision) }
  return { ...message, envelope, ...(deferred_until && { scheduled_at: deferred_until }) }
}

/** The status reason of a message that may not go out, and why, for people. */
export function refusalOf({ reason }: Pick<MessageDecision, "reason">): MessageRefusal {
  const text = REASONS[reason ?? "preference"]
  if (reason === "suppressed") return { reason: "suppressed_recipient", text }
  const has_own_name = reason === "frequency_cap" || reason === DELETED
  return { reason: has_own_name ? reason : "preference", text }
}

export const QUIET_HOURS = "quiet_hours"

export const REASONS: Record<DecisionReason | typeof DELETED, string> = {
  [DELETED]: "The subscriber was deleted before the message was sent.",
  blocked: "The subscriber is blocked and gets no messages.",
  suppressed: "The address is suppressed.",
  category_channels: "The category is not for this channel.",
  unsubscribed:
    "The subscriber unsubscribed from the channel, from this category of it, or from all.",
  channel_disabled: "The preferences of the subscriber switch the channel off.",
  preference: "The preferences of the subscriber exclude the message.",
  default:
    "The defaults of the project exclude the message, and the subscriber chose nothing else.",
  frequency_cap: "The subscriber got as many messages of this kind as the frequency cap allows.",
  quiet_hours: "The subscriber has quiet hours now.",
}
