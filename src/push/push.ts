import { and, asc, eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { isoFrom, millisFrom } from "../core/time"
import { deviceNow } from "../devices/find-device"
import type { Platform } from "../devices/tables"
import * as feed from "../events/feed"
import { fieldsOf } from "../lib/record-fields"
import * as messageList from "../messages/message-list"
import {
  asTheyStand,
  lookupIn,
  type MessageListFilter,
  type MessageView,
} from "../messages/message-list"
import { cancelQueued } from "../messages/scheduled"
import { isScheduled, type Message, wantedSince } from "../messages/status-changes"
import { messageContents } from "../messages/tables"
import { lastReceiptId } from "../providers/callbacks"
import type { ListWindow } from "../store/rows"
import type { Reader, Store } from "../store/store"
import { LONGEST_TTL_SECONDS, type PushContent } from "./push-content"
import { ListedPush, PushMessage } from "./schemas"
import { pushAcks } from "./tables"

/** A push message of the project, or 404: an absent one and a foreign one answer alike. */
export const find = async (db: Reader, project_id: string, id: string): Promise<Message> =>
  (await lookupIn(db, { project_id, channel: "push" }, id)) ?? gone()

const gone = () => fail("not_found", "There is no such push message.")

export const list = (
  db: Reader,
  project_id: string,
  filter: MessageListFilter,
  window: ListWindow,
) =>
  messageList.list(db, { project_id, channel: "push" }, filter, window, async (rows) => {
    const contents = await contentsOf(db, rows)
    return rows.map((message) => listed(message, contents.get(message.id)))
  })

/** The name of a device that is named by the id of its record; any other name as it is. */
export async function nameOfDevice(
  db: Reader,
  project_id: string,
  name: string | undefined,
): Promise<string | undefined> {
  const device = name !== undefined && isUuid(name) ? await deviceNow(db, name) : undefined
  return device?.project_id === project_id ? device.device_id : name
}

/** The whole record. Throws 404 for a foreign one. */
export async function get(db: Reader, project_id: string, id: string) {
  const [message] = await asTheyStand(db, [await find(db, project_id, id)])
  if (!message) return gone()
  const acks = await acksOf(db, message)
  const content = (await contentsOf(db, [message])).get(id)
  const { envelope, error, status } = message
  const ttl_seconds = envelope?.push?.ttl_seconds ?? LONGEST_TTL_SECONDS
  return fieldsOf(PushMessage, {
    ...message,
    ...listed(message, content),
    action_buttons: (content?.action_buttons ?? []).map(({ url = null, ...one }) => ({
      ...one,
      url,
    })),
    badge: content?.badge ?? null,
    sound: content?.sound ?? null,
    image_url: content?.image_url ?? null,
    icon: content?.icon ?? null,
    url: content?.url ?? null,
    content_available: content?.content_available ?? false,
    collapse_id: content?.collapse_id ?? null,
    priority: content?.priority ?? null,
    ttl_seconds,
    provider_message_id: await lastReceiptId(db, project_id, id),
    error_code: error?.code ?? null,
    provider_code: error?.provider_code ?? null,
    error_message: error?.message ?? null,
    expires_at: isoFrom(millisFrom(wantedSince(message)) + ttl_seconds * 1000),
    failed_at: status === "failed" ? (message.last_event_at ?? message.updated_at) : null,
    opened_at: acks.find(({ event }) => event === "opened")?.created_at ?? null,
    events: await timelineOf(db, message, acks),
  })
}

export async function cancel(store: Store, project_id: string, id: string): Promise<void> {
  await find(store.read, project_id, id)
  await cancelQueued(store, (tx) => find(tx, project_id, id), "push message", id)
}

type AckRow = typeof pushAcks.$inferSelect

const acksOf = (db: Reader, { id, project_id }: Pick<Message, "id" | "project_id">) =>
  db
    .select()
    .from(pushAcks)
    .where(and(eq(pushAcks.message_id, id), eq(pushAcks.project_id, project_id)))
    .orderBy(asc(pushAcks.created_at))

/** What the device told after the end of its message is no event, and stands here all the same. */
async function timelineOf(db: Reader, { id, project_id }: MessageView, acks: AckRow[]) {
  const story = await feed.about(db, project_id, id)
  const known = new Set(story.map(({ type }) => type))
  const told = acks.flatMap(({ event, created_at: timestamp }) => {
    const type = `push.${event}`
    return known.has(type) ? [] : [{ type, timestamp, detail: null }]
  })
  const facts = story.map(({ type, created_at, data, detail }) => ({
    type,
    timestamp: String(data.timestamp ?? created_at),
    detail: detail && {
      response: detail.response,
      provider_code: detail.provider_code ?? null,
    },
  }))
  return [...facts, ...told].sort((a, b) => (a.timestamp < b.timestamp ? -1 : 1))
}

/** Null where its time did not come. */
function queuedAt(message: MessageView): string | null {
  const { scheduled_at, created_at, updated_at, status } = message
  if (scheduled_at === null) return created_at
  const was_cancelled = status === "cancelled" && updated_at < scheduled_at
  return isScheduled(message) || was_cancelled ? null : scheduled_at
}

/** As lists show it. */
function listed(message: MessageView, content: PushContent | undefined) {
  const { sender, envelope, address: device_id } = message
  return fieldsOf(ListedPush, {
    ...message,
    device_id,
    platform: sender as Platform | null,
    provider: envelope?.push?.provider ?? null,
    title: content?.title ?? null,
    body: content?.body ?? null,
    data: content ? (content.data ?? {}) : null,
    queued_at: queuedAt(message),
  })
}

/** By message; those that are no longer stored are not in it. */
async function contentsOf(db: Reader, list: Pick<Message, "id">[]) {
  if (list.length === 0) return new Map<string, PushContent>()
  const ids = list.map(({ id }) => id)
  const rows = db.select().from(messageContents).where(inArray(messageContents.message_id, ids))
  return new Map(
    (await rows).map(({ message_id, content }) => [message_id, content as PushContent]),
  )
}
