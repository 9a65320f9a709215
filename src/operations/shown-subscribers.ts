import type { Static } from "@sinclair/typebox"
import { deviceCounts } from "../devices/find-device"
import { unreadIn } from "../inbox/ledger"
import type { Reader } from "../store/store"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import type { Subscriber } from "../subscribers/schemas"
import { toResponse } from "../subscribers/subscribers"

type SubscriberRecord = Static<typeof Subscriber>

/** Subscriber records of one project, with what their inboxes hold and how many devices they have. */
export async function shownSubscribers(
  db: Reader,
  rows: SubscriberRow[],
): Promise<SubscriberRecord[]> {
  const unread = await unreadIn(
    db,
    rows.map(({ id }) => id),
  )
  const names = rows.map(({ external_id }) => external_id)
  const devices = await deviceCounts(db, rows[0]?.project_id ?? "", names)
  return rows.map((row) =>
    toResponse(row, {
      unread: unread.get(row.id) ?? 0,
      devices: devices.get(row.external_id) ?? 0,
    }),
  )
}

export async function shownSubscriber(db: Reader, row: SubscriberRow): Promise<SubscriberRecord> {
  const [shown] = await shownSubscribers(db, [row])
  return shown as SubscriberRecord
}
