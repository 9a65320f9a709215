import {
  and,
  count,
  countDistinct,
  desc,
  eq,
  gt,
  gte,
  isNull,
  lt,
  ne,
  not,
  or,
  type Param,
  type SQL,
  sql,
} from "drizzle-orm"
import { firstIdAt, madeAt, newId } from "../core/ids"
import { isoFrom, millis, millisFrom } from "../core/time"
import type { ProjectSettings } from "../identity/tables"
import type { AudienceChannel, FrequencyCap } from "../lib/preferences"
import { forKeyShare, forUpdate, isAmong } from "../store/columns"
import { SKEW_MS } from "../store/rows"
import type { Reader } from "../store/store"
import type { AudienceMember } from "../subscribers/audience"
import { type CategoryRow, knownCategories } from "../subscribers/categories"
import {
  type DecidedCategory,
  type DecisionInput,
  decide,
  plainCategory,
  type SendDecision,
} from "../subscribers/decision"
import { takenInBy } from "../subscribers/merged-subscribers"
import { mergedSubscribers, subscribers } from "../subscribers/tables"
import { type MailScope, suppressedAmong } from "../suppressions/look-up"
import { isUncounted } from "./contents"
import { isOneSend } from "./status-changes"
import { messages } from "./tables"

/** One message to one recipient, of which is asked whether it may go out. */
export interface MessageQuery
  extends Pick<DecisionInput, "topic" | "channel" | "stream" | "at" | "ignores_preferences"> {
  /** Null: a raw address. */
  subscriber: AudienceMember | null
  /** In the form in which addresses compare; null: suppressions are not asked. */
  address: string | null
  category: string | null
  /** Where it is asked again, as the message leaves: the cap then counts only what was accepted before it. */
  message_id?: string
  /** The send that it is one of several messages of: they have one answer, and count once. */
  send?: string | undefined
  workflow?: DecisionInput["workflow"]
}

export interface AskingProject {
  id: string
  settings: ProjectSettings
}

/**
 * The decision for each of many messages, in their order (contract 43, section 2). At accept it is asked
 * within the accepting transaction, which counts the frequency cap: of these messages, too. That transaction
 * loads the subscribers with `lockFor`.
 */
export async function decideAll(
  db: Reader,
  project: AskingProject,
  asked: readonly MessageQuery[],
): Promise<SendDecision[]> {
  const known = await knownCategories(db, project.id)
  const suppressed = await suppressedOf(db, project.id, asked)
  const { frequency_cap } = project.settings
  const recent = frequency_cap
    ? await recentOf(db, project.id, asked, frequency_cap)
    : new Map<string, number>()
  const sends = new Map<string, SendDecision>()
  return asked.map((one) => {
    const same = sends.get(one.send ?? "")
    if (same) return same
    const place = frequency_cap ? countedPlace(one) : ""
    const decision = decide({
      ...one,
      is_suppressed: one.address !== null && isSuppressed(suppressed, one),
      category: categoryOf(known, one.category),
      workflow: one.workflow ?? null,
      project: project.settings,
      recent: recent.get(place) ?? 0,
    })
    if (frequency_cap && counts(decision, one)) recent.set(place, (recent.get(place) ?? 0) + 1)
    if (one.send !== undefined) sends.set(one.send, decision)
    return decision
  })
}

/**
 * How a transaction that accepts messages holds their subscribers on Postgres. None is removed or merged away
 * meanwhile, and two transactions do not pass the cap of one subscriber together. The order of locks is
 * everywhere the same: a part of a fan-out, the quota, the bucket, subscribers, then what counts.
 */
export const lockFor = ({ frequency_cap }: Pick<ProjectSettings, "frequency_cap">) =>
  frequency_cap ? forUpdate : forKeyShare

const counts = ({ is_allowed, row }: SendDecision, { stream }: MessageQuery) =>
  is_allowed && row !== 4 && stream !== "auth"

const categoryOf = (
  known: ReadonlyMap<string, CategoryRow>,
  slug: string | null,
): DecidedCategory | null => (slug === null ? null : (known.get(slug) ?? plainCategory(slug)))

const scopeOf = ({ category, topic, stream }: MessageQuery): MailScope => ({
  category,
  topic: topic?.key,
  broadcast: stream === "broadcast" && topic === null,
})

/** The key of a topic stands last, because it is the only part that may have spaces. */
const scopeName = ({ channel, stream, category, topic }: MessageQuery) =>
  `${channel} ${stream} ${category ?? ""} ${topic === null ? "" : `${topic.key}.`}`

type SuppressedByScope = ReadonlyMap<string, ReadonlyMap<string, unknown>>

const isSuppressed = (suppressed: SuppressedByScope, one: MessageQuery): boolean =>
  suppressed.size > 0 && (suppressed.get(scopeName(one))?.has(one.address ?? "") ?? false)

async function suppressedOf(
  db: Reader,
  project_id: string,
  asked: readonly MessageQuery[],
): Promise<SuppressedByScope> {
  const found = new Map<string, ReadonlyMap<string, unknown>>()
  for (const [name, group] of Map.groupBy(asked, scopeName)) {
    const [first] = group
    const addresses = [...new Set(group.flatMap(({ address }) => address ?? []))]
    if (!first || addresses.length === 0) continue
    const owner = { project_id, channel: first.channel }
    const among = await suppressedAmong(db, owner, addresses, scopeOf(first))
    if (among.size > 0) found.set(name, among)
  }
  return found
}

/** What the cap counts together: no category is one of its own. */
const countedPlace = (one: MessageQuery): string => `${one.subscriber?.id} ${countedKind(one)}`

const countedKind = ({ channel, category, message_id }: MessageQuery): string =>
  `${channel} ${category ?? ""} ${message_id ?? ""}`

async function recentOf(
  db: Reader,
  project_id: string,
  asked: readonly MessageQuery[],
  cap: FrequencyCap,
): Promise<Map<string, number>> {
  const capped = asked.filter(({ subscriber, stream }) => subscriber && stream !== "auth")
  const recent = new Map<string, number>()
  for (const [kind, group] of Map.groupBy(capped, countedKind)) {
    const [first] = group
    if (!first) continue
    const ids = group.flatMap(({ subscriber }) => subscriber?.id ?? [])
    for (const { id, total } of await countRecent(db, { project_id, ids, ...first }, cap)) {
      recent.set(`${id} ${kind}`, Number(total))
    }
  }
  return recent
}

interface CountedKind {
  project_id: string
  channel: AudienceChannel
  category: string | null
  message_id?: string
  send?: string | undefined
}

/** Of one subscriber, so that a program that sends without end does not slow its own sends down. */
const MOST_WALKED = 10_000

/** Within the time of the cap, with those that a merge has yet to give to the subscriber. */
function countRecent(
  db: Reader,
  { ids, ...kind }: CountedKind & { ids: string[] },
  cap: FrequencyCap,
): Promise<{ id: string; total: number }[]> {
  const countedOf = (owner: SQL) => {
    const walked = newest(db, kind, cap, owner)
    const total = isOneSend(kind.channel) ? countDistinct(sendOf(walked)) : count()
    const rows = db.select({ total }).from(walked)
    return rows.where(isCounted(db, walked, kind, cap))
  }
  const own = countedOf(sql`${subscribers.id}`)
  const unmoved = db
    .select({ total: sql`coalesce(sum((${countedOf(sql`${mergedSubscribers.id}`)})), 0)` })
    .from(mergedSubscribers)
    .where(eq(mergedSubscribers.subscriber_id, subscribers.id))
  const among = isAmong(db, subscribers.id, sql`${JSON.stringify([...new Set(ids)])}`)
  return db
    .select({ id: subscribers.id, total: sql<number>`(${own}) + (${unmoved})` })
    .from(subscribers)
    .where(and(eq(subscribers.project_id, kind.project_id), among))
}

/** When the cap lets the next message to the subscriber through; null without a cap. */
export async function capEnds(
  db: Reader,
  { id: project_id, settings }: AskingProject,
  { subscriber, channel, category }: MessageQuery,
): Promise<string | null> {
  const cap = settings.frequency_cap
  if (!cap || !subscriber) return null
  const kind = { project_id, channel, category }
  const former = await takenInBy(db, { project_id, ids: [subscriber.id] })
  const moments = new Map<string, string>()
  // The subscriber comes last: what is moved to it meanwhile is seen in one of the two places.
  for (const owner of [...former.map(({ id }) => id), subscriber.id]) {
    const walked = newest(db, kind, cap, sql.param(owner, messages.subscriber_id))
    const send = isOneSend(channel) ? sendOf(walked) : walked.id
    const last = sql`max(${walked.created_at})`.mapWith(messages.created_at)
    const rows = db.select({ id: sql`${send}`.mapWith(messages.id), last }).from(walked)
    const counted = rows
      .where(isCounted(db, walked, kind, cap))
      .groupBy(send)
      .orderBy(desc(last))
    for (const { id, last: at } of await counted.limit(cap.count))
      moments.set(String(id), String(at))
  }
  const last = [...moments.values()].sort().at(-cap.count)
  return last === undefined ? null : isoFrom(millisFrom(last) + cap.per_seconds * 1000)
}

function newest(
  db: Reader,
  { project_id, message_id }: CountedKind,
  { per_seconds }: FrequencyCap,
  subscriber_id: SQL | Param,
) {
  const made = madeAt(newId()) ?? 0 // by the clock of the ids, which the index follows
  const { id, channel, category, batch_id, fan_out_id, stream, status } = messages
  const { status_reason, created_at } = messages
  const named = { id, channel, category, batch_id, fan_out_id, stream }
  return db
    .select({ ...named, status, status_reason, created_at })
    .from(messages)
    .where(
      and(
        eq(messages.project_id, project_id),
        sql`${messages.subscriber_id} = ${subscriber_id}`,
        sql`${messages.subscriber_id} IS NOT NULL`,
        gte(messages.id, firstIdAt(made - per_seconds * 1000 - SKEW_MS)),
        message_id === undefined ? undefined : lt(messages.id, message_id),
      ),
    )
    .orderBy(desc(messages.id))
    .limit(MOST_WALKED)
    .as("walked")
}

/** What counts once, where the messages of one batch are one send. */
const sendOf = ({ batch_id, id }: ReturnType<typeof newest>) => sql`coalesce(${batch_id}, ${id})`

/**
 * Those that the cap counts: neither codes, nor what was not sent because of a choice, the cap or a person, nor
 * those of a fan-out that does not ask for preferences.
 */
const isCounted = (
  db: Reader,
  walked: ReturnType<typeof newest>,
  { channel, category, send }: CountedKind,
  { per_seconds }: FrequencyCap,
) =>
  and(
    send === undefined ? undefined : or(isNull(walked.batch_id), ne(walked.batch_id, send)),
    gt(walked.created_at, isoFrom(millis() - per_seconds * 1000)),
    eq(walked.channel, channel),
    category === null ? isNull(walked.category) : eq(walked.category, category),
    ne(walked.stream, "auth"),
    ne(walked.status, "cancelled"),
    not(isUncounted(db, walked.fan_out_id)),
    sql`coalesce(${walked.status_reason}, '') NOT IN ('cancelled', 'preference', 'frequency_cap')`,
  )
