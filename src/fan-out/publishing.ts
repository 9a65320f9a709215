import {
  and,
  asc,
  desc,
  eq,
  exists,
  gt,
  gte,
  isNotNull,
  isNull,
  lt,
  lte,
  type SQL,
  type SQLWrapper,
} from "drizzle-orm"
import { fail, tooMany } from "../core/errors"
import { secondsFromNow } from "../core/time"
import { type Claim, keepAnswer } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { projects } from "../identity/tables"
import { countRows, type RowList, rowForUpdate, rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { lookupAll } from "../subscribers/find-subscriber"
import type { MemberPlace } from "../topics/memberships"
import type { TopicRow } from "../topics/tables"
import * as topics from "../topics/topics"
import * as fanOut from "./fan-out"
import { type PublishInput, requireUnexpired } from "./publish-input"
import { type FanOutRow, fanOutParts, fanOuts } from "./tables"

const DEDUPE_SECONDS = 86_400

interface PublishRequest {
  topic_key: string
  input: PublishInput
  claim: Claim | undefined
}

/**
 * Plans a publish to the members of a topic: 201. A repeated `dedupe_key` answers the first publish with
 * 200. Throws what a send of the same content would throw, 404 `topic_not_found`, and 409 where too many
 * publishes of the project are not over.
 */
export async function publish(
  parts: fanOut.FanOutParts,
  caller: Caller,
  { topic_key, input, claim }: PublishRequest,
) {
  const { store } = parts
  const { project_id } = caller
  const topic = await topics.find(store.read, project_id, topic_key)
  const known = await firstOf(store.read, topic, input.dedupe_key)
  if (!known) requireUnexpired(input)
  const prepared = known ? undefined : await prepare(parts, caller, topic, input)
  return store.tx(async (tx) => {
    const held = await topics.forUpdate(tx, project_id, topic_key)
    const first = await firstOf(tx, held, input.dedupe_key)
    if (!first) await requireRoomForPublish(tx, project_id)
    const row = first ?? (prepared && (await fanOut.create(tx, caller, held, prepared, input)))
    if (!row) return fail("conflict", FORGOTTEN, { reason: "dedupe_key_ended" })
    const answer = { data: await toResponse(tx, row), status: first ? 200 : 201 }
    await keepAnswer(tx, claim, answer)
    return answer
  })
}

/** The first publish passed its 24 hours between two looks. */
const FORGOTTEN = "The dedupe_key of this publish has just ended. Send the request again."

async function prepare(
  parts: fanOut.FanOutParts,
  caller: Caller,
  topic: TopicRow,
  { exclude: names, ...input }: PublishInput,
) {
  const found = await lookupAll(parts.store.read, topic.project_id, names)
  const exclude = [...new Set([...found.values()].map(({ id }) => id))]
  return fanOut.prepare(parts, caller, { ...input, exclude })
}

async function firstOf(
  db: Reader,
  { id, project_id }: TopicRow,
  dedupe_key: string | null,
): Promise<FanOutRow | undefined> {
  if (dedupe_key === null) return undefined
  const same = and(
    eq(fanOuts.topic_id, id),
    eq(fanOuts.dedupe_key, dedupe_key),
    eq(fanOuts.project_id, project_id),
    gt(fanOuts.created_at, secondsFromNow(-DEDUPE_SECONDS)),
  )
  const rows = db.select().from(fanOuts).where(same)
  const [row] = await rows.orderBy(desc(fanOuts.id)).limit(1)
  return row
}

export const list = (db: Reader, { id, project_id }: TopicRow): RowList<FanOutRow> =>
  rowList(db, fanOuts, {
    of: and(eq(fanOuts.project_id, project_id), eq(fanOuts.topic_id, id)),
    missing: () => fail("not_found", "There is no such publish."),
  })

/** The Publish record of the contract (43, section 3). */
export async function toResponse(db: Reader, row: FanOutRow) {
  const [response] = await fanOut.toResponses(db, [row])
  if (!response) throw new Error("A publish has no response")
  return response
}

/** Publishes of one project that are not over, scheduled ones with them. Each keeps its texts. */
export const MOST_OPEN_PUBLISHES = 1000

const isOpen = (project_id: string) =>
  and(eq(fanOuts.project_id, project_id), isNull(fanOuts.completed_at))

/** Throws 409 `conflict`, reason `too_many`, where the project cannot have one more publish now. */
async function requireRoomForPublish(tx: Tx, project_id: string): Promise<void> {
  await rowForUpdate(tx, projects, project_id)
  if ((await countRows(tx, fanOuts, isOpen(project_id))) < MOST_OPEN_PUBLISHES) return
  const text = `A project has at most ${MOST_OPEN_PUBLISHES} publishes that are not over. Wait for the end of one, or cancel one.`
  tooMany(text, MOST_OPEN_PUBLISHES)
}

export const isOfOpenFanOut = (db: Reader, project_id: string, fan_out_id: SQLWrapper): SQL =>
  exists(
    db
      .select({ id: fanOuts.id })
      .from(fanOuts)
      .where(and(isOpen(project_id), eq(fanOuts.id, fan_out_id))),
  )

/** When the first of the publishes began that are not over. Undefined: none has begun. */
export async function firstOpenStart(db: Reader, project_id: string): Promise<string | undefined> {
  const { started_at } = fanOuts
  const begun = and(isOpen(project_id), isNotNull(started_at))
  const rows = db.select({ started_at }).from(fanOuts).where(begun)
  const [first] = await rows.orderBy(asc(started_at)).limit(1)
  return first?.started_at ?? undefined
}

export async function isPublishing(
  db: Reader,
  { id, project_id }: { id: string; project_id: string },
): Promise<boolean> {
  const rows = db.select({ id: fanOuts.id }).from(fanOuts)
  return (await rows.where(and(isOpen(project_id), eq(fanOuts.topic_id, id))).limit(1)).length > 0
}

/**
 * Whether a publish that is not over is yet to come to the first place, and began before the second one was taken.
 * A subscriber that has both needs the first one, because the publish never comes to the second one.
 */
export async function isYetToCome(
  db: Reader,
  project_id: string,
  { topic_id, number }: MemberPlace,
  { created_at }: Pick<MemberPlace, "created_at">,
): Promise<boolean> {
  const { fan_out_id, cursor, until } = fanOutParts
  const early = and(eq(fanOuts.topic_id, topic_id), lte(fanOuts.started_at, created_at))
  const rows = await db
    .select({ fan_out_id })
    .from(fanOutParts)
    .innerJoin(fanOuts, eq(fanOuts.id, fan_out_id))
    .where(and(isOpen(project_id), early, lt(cursor, number), gte(until, number)))
    .limit(1)
  return rows.length > 0
}
