import { and, asc, eq, inArray, isNotNull } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { gathered } from "../store/batcher"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { type DeviceRow, devices } from "./tables"

/** Devices of one person. Another one takes the place of that which was active longest ago. */
export const MOST_OF_USER = 100

/** A device by the id of its record; undefined where it is gone. Many that ask at once share the query. */
export const deviceNow = gathered<string, DeviceRow | undefined>(async (db, ids) => {
  const rows = new Map((await findRows(db, { ids })).map((row) => [row.id, row]))
  return ids.map((id) => rows.get(id))
})

const findRows = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select()
    .from(devices)
    .where(isAmong(db, devices.id, slot.ids)),
)

/** All devices of these people, whatever their scope and status, in the order of their registration. */
export async function devicesOf(
  db: Reader,
  project_id: string,
  user_ids: string[],
): Promise<DeviceRow[]> {
  if (user_ids.length === 0) return []
  const theirs = and(
    eq(devices.project_id, project_id),
    inArray(devices.user_id, user_ids),
    isNotNull(devices.user_id),
  )
  return db.select().from(devices).where(theirs).orderBy(asc(devices.id))
}

/** A device by the id of its record, or by its name. Throws 404 `device_not_found`. */
export async function deviceNamed(
  db: Reader,
  project_id: string,
  name: string,
): Promise<DeviceRow> {
  const { id, device_id } = devices
  const named = isUuid(name) ? eq(id, name) : eq(device_id, name)
  const ours = and(eq(devices.project_id, project_id), named)
  const [row] = await db.select().from(devices).where(ours).limit(1)
  return row ?? fail("device_not_found", "There is no such device in this project.")
}
