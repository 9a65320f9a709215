import { and, eq, like, type SQL } from "drizzle-orm"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { fieldsOf } from "../lib/record-fields"
import { totals } from "../store/counters"
import type { RowList } from "../store/rows"
import type { Reader } from "../store/store"
import { idsByExternalId } from "../subscribers/find-subscriber"
import { noDevice } from "./find-device"
import * as schemas from "./schemas"
import { type DeviceScope, shownScope } from "./scope"
import {
  DEVICE_STATUSES,
  type DeviceRow,
  type DeviceStatus,
  devices,
  PLATFORMS,
  type Platform,
  PUSH_PROVIDERS,
} from "./tables"

interface DeviceFilter {
  user_id?: string | undefined
  platform?: Platform | undefined
  status?: DeviceStatus | undefined
  scope?: DeviceScope["type"] | undefined
}

/** Newest first. */
export function list(
  db: Reader,
  project_id: string,
  { user_id, platform, status, scope }: DeviceFilter,
): RowList<DeviceRow> {
  const filters = [
    platform && eq(devices.platform, platform),
    status && eq(devices.status, status),
    scope && ofType(scope),
  ].filter((one) => one !== undefined)
  return registered.list(db, project_id, {
    indexed: user_id === undefined ? undefined : eq(devices.user_id, user_id),
    filter: filters.length > 0 ? and(...filters) : undefined,
  })
}

const registered = noun({ name: "device", table: devices, missing: noDevice, counter: "devices" })

const ofType = (type: DeviceScope["type"]): SQL =>
  type === "project" ? eq(devices.scope, type) : like(devices.scope, `${type}:%`)

/** From counters. */
export async function stats(db: Reader, project_id: string) {
  const named = (kind: string, words: readonly string[]) => words.map((one) => `${kind}.${one}`)
  const names = [
    ...named("status", DEVICE_STATUSES),
    ...named("platform", PLATFORMS),
    ...named("provider", PUSH_PROVIDERS),
  ]
  const found = await totals(db, project_id, ["devices", ...names.map(counterOf)])
  const of = (name: string) => found.get(counterOf(name)) ?? 0
  const by = (kind: string, words: readonly string[]) =>
    Object.fromEntries(words.map((one) => [one, of(`${kind}.${one}`)]))
  return {
    total: found.get("devices") ?? 0,
    active: of("status.active"),
    expired: of("status.expired"),
    by_platform: by("platform", PLATFORMS),
    by_provider: by("provider", PUSH_PROVIDERS),
  }
}

/** Devices as answers show them. Only keys and people see tokens. */
export async function shownAll(db: Reader, { kind, project_id }: Caller, rows: DeviceRow[]) {
  const users = rows.flatMap(({ user_id }) => user_id ?? [])
  const subscribers = await idsByExternalId(db, project_id, [...new Set(users)])
  const sees_token = kind === "key" || kind === "console"
  return rows.map((row) => {
    const subscriber_id = subscribers.get(row.user_id ?? "") ?? null
    const token = sees_token ? row.token : null
    return fieldsOf(schemas.Device, { ...row, subscriber_id, token, scope: shownScope(row.scope) })
  })
}

export async function shown(db: Reader, caller: Caller, row: DeviceRow) {
  const [device] = await shownAll(db, caller, [row])
  return device ?? noDevice()
}

const counterOf = (name: string) => `devices.${name}`
