import { and, desc, eq, gt } from "drizzle-orm"
import { fail } from "../core/errors"
import { secondsFromNow } from "../core/time"
import { type Claim, keepAnswer } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { type RowList, rowList } from "../store/rows"
import type { Reader } from "../store/store"
import { lookupAll } from "../subscribers/find-subscriber"
import type { TopicRow } from "../topics/tables"
import * as topics from "../topics/topics"
import * as fanOut from "./fan-out"
import { requireRoomForPublish } from "./open-publishes"
import { type PublishInput, requireUnexpired } from "./publish-input"
import { type FanOutRow, fanOuts } from "./tables"

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
