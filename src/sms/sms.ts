import { inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Event } from "../events/feed"
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
import { readableOf } from "../messages/sealed-contents"
import { isScheduled, type Message } from "../messages/status-changes"
import { messageContents } from "../messages/tables"
import { lastReceiptId } from "../providers/callbacks"
import { routing } from "../providers/routing"
import type { ListWindow } from "../store/rows"
import type { Reader, Store } from "../store/store"
import type { TextContent } from "./prepare"
import { ListedText, Text } from "./schemas"
import { firstAllowing, LOG } from "./sms-routing"

/** A text of the project, or 404: an absent one and a foreign one answer alike. */
export const find = async (db: Reader, project_id: string, id: string): Promise<Message> =>
  (await lookupIn(db, { project_id, channel: "sms" }, id)) ?? gone()

const gone = () => fail("not_found", "There is no such text.")

export const list = (
  db: Reader,
  project_id: string,
  filter: MessageListFilter,
  window: ListWindow,
) =>
  messageList.list(db, { project_id, channel: "sms" }, filter, window, async (rows) => {
    const bodies = await bodiesOf(db, rows)
    return rows.map((message) => listed(message, bodies.get(message.id)))
  })

/** The whole record. Throws 404 for a foreign one. */
export async function get(db: Reader, project_id: string, id: string) {
  const [message] = await asTheyStand(db, [await find(db, project_id, id)])
  if (!message) return gone()
  const story = await feed.about(db, project_id, id)
  const bodies = await bodiesOf(db, [message])
  const { envelope, error, status, status_reason, delivered_at } = message
  const { provider_code = null } = error ?? {}
  const is_over = status === "failed" || status === "undelivered"
  return fieldsOf(Text, {
    ...message,
    ...listed(message, bodies.get(id)),
    encoding: envelope?.sms?.encoding ?? "ucs2",
    category: envelope?.category ?? null,
    status_reason,
    provider_message_id: await lastReceiptId(db, project_id, id),
    error: error && { code: error.code, provider_code, message: error.message },
    price: lastPrice(story),
    is_test: await isTest(db, message),
    in_reply_to: envelope?.sms?.in_reply_to ?? null,
    queued_at: queuedAt(message),
    delivered_at,
    failed_at: is_over ? (message.last_event_at ?? message.updated_at) : null,
    timeline: story.map(({ type, created_at, data, detail }) => ({
      type,
      timestamp: String(data.timestamp ?? created_at),
      detail: detail && {
        response: detail.response,
        provider_code: detail.provider_code ?? null,
      },
    })),
  })
}

export async function cancel(store: Store, project_id: string, id: string): Promise<void> {
  await find(store.read, project_id, id)
  await cancelQueued(store, (tx) => find(tx, project_id, id), "text", id)
}

/** Null where its time did not come, and of a text that came in. */
function queuedAt(message: MessageView): string | null {
  const { scheduled_at, created_at, updated_at, status } = message
  if (status === "received") return null
  if (scheduled_at === null) return created_at
  const was_cancelled = status === "cancelled" && updated_at < scheduled_at
  return isScheduled(message) || was_cancelled ? null : scheduled_at
}

/** As lists show it. The address of the row is the person: a text that came in is from it. */
function listed(message: MessageView, body: string | undefined) {
  const { id, address, sender, status, sent_at, created_at, units } = message
  const is_inbound = status === "received"
  return fieldsOf(ListedText, {
    id,
    to: is_inbound ? (sender ?? "") : address,
    from: is_inbound ? address : sender,
    body: body ?? null,
    segments: message.envelope?.sms?.segments ?? units ?? 1,
    status,
    direction: is_inbound ? "inbound" : "outbound",
    sent_at,
    created_at,
  })
}

/** By message; those that are no longer stored are not in it. */
async function bodiesOf(db: Reader, list: Pick<Message, "id">[]): Promise<Map<string, string>> {
  if (list.length === 0) return new Map()
  const ids = list.map(({ id }) => id)
  const rows = db.select().from(messageContents).where(inArray(messageContents.message_id, ids))
  return new Map(
    (await rows).map(({ message_id, content }) => [
      message_id,
      (readableOf(content) as TextContent).body,
    ]),
  )
}

const lastPrice = (story: Event[]) =>
  story.findLast(({ detail }) => detail?.price)?.detail?.price ?? null

/** It went to `log`, or would go there now. */
async function isTest(db: Reader, message: MessageView): Promise<boolean> {
  const { sandbox, provider, address, project_id } = message
  if (sandbox || provider !== null) return sandbox || provider === LOG
  const routes = await routing(db, "sms_provider", project_id, { recent: true })
  return firstAllowing(routes, address)?.provider === LOG
}
