import { fail } from "../core/errors"
import { devicesOf, findDevice } from "../devices/find-device"
import { isTestScope } from "../devices/scope"
import type { DeviceRow } from "../devices/tables"
import type { Reader } from "../store/store"
import {
  findExternal,
  find as findSubscriber,
  lookupExternal,
  type SubscriberRow,
} from "../subscribers/find-subscriber"
import type { PushTarget } from "./push-input"

interface PushRecipients {
  /** At least one. */
  devices: DeviceRow[]
  /** The subscriber that they belong to. */
  subscriber: SubscriberRow | null
}

/**
 * The active devices that a push message reaches. Throws 404 `device_not_found` or `subscriber_not_found`, and 409 for
 * the name of devices of several scopes.
 */
export async function recipientsOf(
  db: Reader,
  project_id: string,
  { by, name, is_test }: PushTarget,
): Promise<PushRecipients> {
  if (by === "device_id") {
    const device = await findDevice(db, project_id, name)
    const { user_id, status } = device
    if (status !== "active") fail("device_not_found", `The device is ${status}.`, { status })
    const owner = user_id === null ? undefined : await lookupExternal(db, project_id, user_id)
    return { devices: [device], subscriber: owner ?? null }
  }
  const subscriber = await personOf(db, project_id, { by, name })
  const all = await devicesOf(db, project_id, [subscriber?.external_id ?? name])
  const devices = all.filter((device) => isReached(device, is_test))
  return devices.length > 0 ? { devices, subscriber } : fail("device_not_found", NO_DEVICE)
}

const NO_DEVICE = "The recipient has no active device that this message reaches."

/** Pushes to people reach each scope but those of environments for tests, or these alone. */
export const isReached = ({ scope, status }: DeviceRow, is_test: boolean): boolean =>
  status === "active" && isTestScope(scope) === is_test

async function personOf(
  db: Reader,
  project_id: string,
  { by, name }: Pick<PushTarget, "by" | "name">,
): Promise<SubscriberRow | null> {
  if (by === "user_id") return (await lookupExternal(db, project_id, name)) ?? null
  const find = by === "external_id" ? findExternal : findSubscriber
  return find(db, project_id, name)
}
