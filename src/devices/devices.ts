import { createHash } from "node:crypto"
import { and, asc, eq, or } from "drizzle-orm"
import { fail, Problems } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { forUpdate } from "../store/columns"
import { rowForUpdate } from "../store/rows"
import type { Tx } from "../store/store"
import type { DeviceActor } from "./device-actor"
import { type DeviceChanges, type DeviceToken, type NewDevice, requireToken } from "./device-input"
import {
  countingLast,
  insertDevice,
  makeRoom,
  removeDevices,
  removeDevicesOf,
  takeNames,
  updateDevice,
} from "./device-rows"
import { findDevice, lookupNamed, noDevice } from "./find-device"
import { type DeviceRow, devices } from "./tables"

/** Each further look means that another transaction took a name or a token meanwhile. */
const MOST_LOOKS = 10

async function untilSaved<Saved>(save: () => Promise<Saved | undefined>): Promise<Saved> {
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const saved = await save()
    if (saved) return saved
  }
  throw new Error("other transactions took the name or the token of a device again and again")
}

/**
 * Adds a device, or updates the one with this name or this token in the scope: a caller that presents a token holds it. Throws 409
 * `duplicate_device` where the token, or a name that is presented without its token, belongs to another user.
 */
export const register = (tx: Tx, actor: DeviceActor, given: NewDevice) =>
  countingLast(tx, () => untilSaved(() => save(tx, actor, given)))

async function save(tx: Tx, actor: DeviceActor, given: NewDevice) {
  const { device_id } = given
  const { named, holder } = await sameIn(tx, actor, { device_id, token_hash: hashOf(given) })
  const before = named ?? holder
  const user_id = userOf(actor, given, before)
  if (holder && holder !== named) refuseOther(holder, user_id)
  // A person proves by the token that a device of another one is theirs by now.
  if (named && holder !== named && actor.reach !== "project") refuseOther(named, user_id)
  const kept = before ?? newRow(actor, given)
  const row = { ...registered(kept, given), user_id, device_id: device_id ?? kept.device_id }
  if (holder && holder !== before) await removeDevices(tx, [holder])
  if (user_id !== null && before?.user_id !== user_id) {
    await makeRoom(tx, actor.project_id, user_id, 1)
  }
  if (!before) {
    if (!(await insertDevice(tx, row))) return undefined
  } else if (!(await replace(tx, { before, row, has_token: holder !== undefined })))
    return undefined
  return { row, is_new: device_id === undefined ? !before : !named }
}

/** An app that names no user says nothing of them: a device that is known stays theirs. */
function userOf(
  { reach, user_id }: DeviceActor,
  given: NewDevice,
  before: DeviceRow | undefined,
): string | null {
  if (reach === "user") return user_id
  return given.user_id ?? (reach === "scope" ? before?.user_id : undefined) ?? null
}

interface ReplacedDevice {
  before: DeviceRow
  row: DeviceRow
  /** The transaction holds the row that had the token until now, or has removed it. */
  has_token: boolean
}

/** Writes a row under its new name and token. */
async function replace(tx: Tx, { before, row, has_token }: ReplacedDevice): Promise<boolean> {
  const is_renamed = before.device_id !== row.device_id
  const is_moved = before.token_hash !== row.token_hash && !has_token
  if (is_renamed || is_moved) {
    const id = newId()
    const device_id = is_renamed ? row.device_id : id
    const place = { ...row, id, device_id, token_hash: is_moved ? row.token_hash : id }
    if (!(await takeNames(tx, place))) return false
  }
  await updateDevice(tx, before, row)
  return true
}

/** The row of a name and the one of a token in a scope, which may be the same. */
async function sameIn(
  tx: Tx,
  { project_id, scope }: Pick<DeviceActor, "project_id" | "scope">,
  { device_id, token_hash }: { device_id: string | undefined; token_hash: string },
) {
  const ours = and(eq(devices.project_id, project_id), eq(devices.scope, scope))
  const named = device_id === undefined ? undefined : eq(devices.device_id, device_id)
  const same = and(ours, or(named, eq(devices.token_hash, token_hash)))
  const rows = await forUpdate(tx.select().from(devices).where(same).orderBy(asc(devices.id)))
  return {
    named: rows.find((row) => row.device_id === device_id),
    holder: rows.find((row) => row.token_hash === token_hash),
  }
}

function refuseOther({ user_id: theirs, device_id }: DeviceRow, user_id: string | null): void {
  if (theirs === null || user_id === null || theirs === user_id) return
  const message = `The device ${device_id} of another user has this name or this token. Unlink it first.`
  fail("duplicate_device", message, { device_id })
}

function newRow({ project_id, scope }: DeviceActor, given: NewDevice): DeviceRow {
  const [id, at] = [newId(), now()]
  return {
    ...{ id, project_id, scope, device_id: newId(), user_id: null, platform: given.platform },
    ...{ provider: given.provider, token: "", token_hash: "", keys: null, device_name: null },
    ...{ app_id: null, app_version: null, os_version: null, locale: null, timezone: null },
    ...{ apns_environment: null, status: "active", status_reason: null, failure_count: 0 },
    ...{ metadata: {}, token_at: at, last_active_at: at, last_success_at: null },
    ...{ created_at: at, updated_at: at },
  }
}

/** What is absent stays. */
function registered(before: DeviceRow, { platform, fields, ...token }: NewDevice): DeviceRow {
  // Its app registers at each start: that must not undo what somebody switched off.
  const status = before.status === "disabled" ? before.status : ("active" as const)
  const row = { ...before, ...fields, ...presented(token), platform, status }
  const environment = row.provider === "apns" ? row.apns_environment : null
  return { ...row, apns_environment: environment, ...active() }
}

/** The columns of a token that was presented now. */
function presented({ provider, token, keys }: DeviceToken) {
  const fresh = { status_reason: null, failure_count: 0, token_at: now() }
  return { provider, token, keys, token_hash: hashOf({ provider, token }), ...fresh }
}

const active = () => ({ last_active_at: now(), updated_at: now() })

const hashOf = ({ provider, token }: Pick<DeviceToken, "provider" | "token">): string =>
  createHash("sha256").update(`${provider}:${token}`).digest("hex")

/** The device that an actor may change, held until the transaction ends. Throws 404, and 409 where the name is not unique. */
async function hold(tx: Tx, actor: DeviceActor, name: string): Promise<DeviceRow> {
  const { project_id, scope, reach, user_id } = actor
  const found =
    reach === "project"
      ? await findDevice(tx, project_id, name)
      : (await lookupNamed(tx, project_id, name)).find((row) => row.scope === scope)
  const ours = eq(devices.project_id, project_id)
  const row = found && (await rowForUpdate(tx, devices, found.id, ours))
  const is_theirs = reach !== "user" || row?.user_id === null || row?.user_id === user_id
  return row && is_theirs ? row : noDevice()
}

/** Throws 409 `duplicate_device` where the token belongs to another user, and 422 for one of another provider. */
export async function change(
  tx: Tx,
  actor: DeviceActor,
  name: string,
  given: DeviceChanges,
): Promise<DeviceRow> {
  const save = async () => {
    const before = await hold(tx, actor, name)
    const token = tokenFor(before, given)
    const row = changed(before, given, token)
    if (!token) return updateDevice(tx, before, row)
    const { holder } = await sameIn(tx, row, { device_id: undefined, token_hash: row.token_hash })
    if (holder && holder.id !== row.id) {
      refuseOther(holder, row.user_id)
      await removeDevices(tx, [holder])
    }
    const is_saved = await replace(tx, { before, row, has_token: holder !== undefined })
    return is_saved ? row : undefined
  }
  return countingLast(tx, () => untilSaved(save))
}

function tokenFor({ provider }: DeviceRow, { token, subscription }: DeviceChanges) {
  if (token === undefined && subscription === undefined) return undefined
  const problems = new Problems()
  const read = requireToken({ provider, token, subscription }, problems)
  problems.throwIfAny()
  return read
}

function changed(
  before: DeviceRow,
  { fields, enabled }: DeviceChanges,
  token: DeviceToken | undefined,
): DeviceRow {
  const row = { ...before, ...fields, ...(token && presented(token)), ...active() }
  const is_back = row.status === "expired" && token !== undefined
  const status = is_back ? "active" : row.status
  if (enabled === undefined || status === "expired") return { ...row, status }
  return { ...row, status: enabled ? "active" : "disabled" }
}

/** Throws 404. Returns the device. */
export async function remove(tx: Tx, actor: DeviceActor, name: string): Promise<DeviceRow> {
  const row = await hold(tx, actor, name)
  await removeDevices(tx, [row])
  return row
}

/** The device stays, and belongs to nobody: somebody signed out. Throws 404. */
export async function unlink(tx: Tx, actor: DeviceActor, name: string): Promise<DeviceRow> {
  const before = await hold(tx, actor, name)
  return updateDevice(tx, before, { ...before, user_id: null, updated_at: now() })
}

/** Of every scope. Returns how many there were. */
export const removeOfUser = async (tx: Tx, project_id: string, user_id: string): Promise<number> =>
  user_id.includes("\0") ? 0 : removeDevicesOf(tx, project_id, [user_id])
