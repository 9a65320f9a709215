import { and, asc, count, eq, inArray, isNotNull } from "drizzle-orm"
import { fail } from "../core/errors"
import { gathered } from "../store/batcher"
import { idList, isAmong } from "../store/columns"
import { rowById } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { shownScope } from "./scope"
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

export const noDevice = (): never =>
  fail("device_not_found", "There is no such device in this project.")

/**
 * By the id of its record, or by the device_id of its registration, in any scope. Throws 404 `device_not_found`, and
 * 409 `conflict` (reason `ambiguous`) where several scopes have the device_id.
 */
export async function findDevice(db: Reader, project_id: string, name: string): Promise<DeviceRow> {
  const row = await rowById(db, devices, name, eq(devices.project_id, project_id))
  if (row) return row
  const [first, ...others] = await lookupNamed(db, project_id, name)
  if (!first) return noDevice()
  if (others.length === 0) return first
  const scopes = [first, ...others].map(({ id, scope }) => ({ id, scope: shownScope(scope) }))
  const message = `Several scopes have a device ${name}. Name the one that is meant by its id.`
  return fail("conflict", message, { reason: "ambiguous", scopes })
}

/** Scopes that an answer names. */
const MOST_SCOPES = 100

/** The devices of all scopes with this device_id. Postgres stores no NUL, and refuses to look for it. */
export async function lookupNamed(
  db: Reader,
  project_id: string,
  device_id: string,
): Promise<DeviceRow[]> {
  if (device_id.includes("\0")) return []
  const named = and(eq(devices.project_id, project_id), eq(devices.device_id, device_id))
  return db.select().from(devices).where(named).orderBy(asc(devices.scope)).limit(MOST_SCOPES)
}

/** The devices that belong to the users, of every scope and status, in the order of their registration. */
export async function devicesOf(
  db: Reader,
  project_id: string,
  user_ids: string[],
): Promise<DeviceRow[]> {
  if (user_ids.length === 0) return []
  return db.select().from(devices).where(ofUsers(project_id, user_ids)).orderBy(asc(devices.id))
}

/** How many devices these people have, by their user ids. A person without any is absent. */
export async function deviceCounts(
  db: Reader,
  project_id: string,
  user_ids: string[],
): Promise<Map<string, number>> {
  if (user_ids.length === 0) return new Map()
  const { user_id } = devices
  const counted = db.select({ user_id, n: count() }).from(devices)
  const rows = await counted.where(ofUsers(project_id, user_ids)).groupBy(user_id)
  return new Map(rows.map((row) => [row.user_id ?? "", row.n]))
}

const ofUsers = (project_id: string, user_ids: string[]) =>
  and(
    eq(devices.project_id, project_id),
    inArray(devices.user_id, user_ids),
    isNotNull(devices.user_id),
  )
