import { and, eq, inArray, isNotNull } from "drizzle-orm"
import { now } from "../core/time"
import { forUpdate } from "../store/columns"
import { type Bump, bumpAll } from "../store/counters"
import { newRowInserter } from "../store/statements"
import type { Tx } from "../store/store"
import { MOST_OF_USER } from "./find-device"
import { type DeviceRow, devices } from "./tables"

/** A device as it was and as it is; one of them is missing where it was added or removed. */
export interface DeviceChange {
  before?: Pick<DeviceRow, CountedColumn> | undefined
  after?: Pick<DeviceRow, CountedColumn> | undefined
}

type CountedColumn = "project_id" | "status" | "platform" | "provider"

/** What a transaction has yet to count. */
const uncounted = new WeakMap<Tx, DeviceChange[]>()

/**
 * Moves the totals as the last step of what changes several devices. On Postgres, a transaction that waits for a
 * device must not hold a total that others wait for.
 */
export async function countingLast<Result>(tx: Tx, change: () => Promise<Result>): Promise<Result> {
  if (uncounted.has(tx)) return change()
  const changes: DeviceChange[] = []
  uncounted.set(tx, changes)
  const result = await change().finally(() => uncounted.delete(tx))
  await countDevices(tx, changes)
  return result
}

/** Moves the totals of the project, in the transaction that writes the rows. */
export async function countDevices(tx: Tx, changes: DeviceChange[]): Promise<void> {
  const later = uncounted.get(tx)
  if (later) return void later.push(...changes)
  const bumps = changes.flatMap(({ before, after }) => [
    ...(before ? bumpsOf(before, -1) : []),
    ...(after ? bumpsOf(after, 1) : []),
  ])
  await bumpAll(tx, bumps)
}

const bumpsOf = (row: Pick<DeviceRow, CountedColumn>, by: 1 | -1): Bump[] =>
  [
    ...["devices", `devices.status.${row.status}`, `devices.platform.${row.platform}`],
    `devices.provider.${row.provider}`,
  ].map((name) => ({ owner: row.project_id, name, by }))

/** False where another row has the name or the token by now. */
export async function insertDevice(tx: Tx, row: DeviceRow): Promise<boolean> {
  const fresh = await insertNew(tx, [row])
  if (!fresh.has(row.id)) return false
  await countDevices(tx, [{ after: row }])
  return true
}

/** Of a device that the transaction holds. */
export async function updateDevice(tx: Tx, before: DeviceRow, after: DeviceRow) {
  await tx.update(devices).set(after).where(itself(before))
  await countDevices(tx, [{ before, after }])
  return after
}

/**
 * Keeps the name and the token of a row for this transaction: another row that has them is written, and removed. On
 * Postgres that waits for others that are about to take one, where a look would not see them. False where one is taken.
 */
export async function takeNames(tx: Tx, place: DeviceRow): Promise<boolean> {
  const fresh = await insertNew(tx, [place])
  if (!fresh.has(place.id)) return false
  await tx.delete(devices).where(itself(place))
  return true
}

const itself = ({ id, project_id }: DeviceRow) =>
  and(eq(devices.id, id), eq(devices.project_id, project_id))

const insertNew = newRowInserter(devices, "id")

/** Removes devices that the transaction holds. */
export async function removeDevices(tx: Tx, rows: DeviceRow[]): Promise<void> {
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id)
  await tx.delete(devices).where(inArray(devices.id, ids))
  await countDevices(
    tx,
    rows.map((before) => ({ before })),
  )
}

/** The devices that belong to the users. The transaction holds their rows until it ends. */
async function heldOf(tx: Tx, project_id: string, user_ids: string[]): Promise<DeviceRow[]> {
  if (user_ids.length === 0) return []
  const theirs = and(
    ...[eq(devices.project_id, project_id), inArray(devices.user_id, user_ids)],
    isNotNull(devices.user_id),
  )
  return forUpdate(tx.select().from(devices).where(theirs).orderBy(devices.id))
}

/** Removes the devices that belong to the users. Returns how many there were. */
export async function removeDevicesOf(
  tx: Tx,
  project_id: string,
  user_ids: string[],
): Promise<number> {
  const rows = await heldOf(tx, project_id, user_ids)
  await removeDevices(tx, rows)
  return rows.length
}

/** Gives the devices of a person to another one, as far as there is room for them. */
export async function giveDevices(tx: Tx, project_id: string, from: string, to: string) {
  const rows = await heldOf(tx, project_id, [from])
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id)
  const change = { user_id: to, updated_at: now() }
  await tx.update(devices).set(change).where(inArray(devices.id, ids))
  await makeRoom(tx, project_id, to)
}

/**
 * Removes what a person has beyond the limit: first what is expired, then what was active longest ago. `of_new`: so
 * many devices are about to be added.
 */
export async function makeRoom(tx: Tx, project_id: string, user_id: string, of_new = 0) {
  const rows = await heldOf(tx, project_id, [user_id])
  const excess = rows.length + of_new - MOST_OF_USER
  if (excess > 0) await removeDevices(tx, rows.sort(leastWanted).slice(0, excess))
}

const leastWanted = (one: DeviceRow, other: DeviceRow): number =>
  Number(other.status === "expired") - Number(one.status === "expired") ||
  (one.last_active_at < other.last_active_at ? -1 : 1)
