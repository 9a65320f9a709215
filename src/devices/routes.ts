import type { Secrets } from "../core/secrets"
import { Deleted, deleted } from "../http/field-schemas"
import { keepAnswer, refuseAnswered } from "../http/idempotency"
import { type ListParts, listPage } from "../http/page"
import { type AnyRoute, type Call, type Method, projectRow, route } from "../http/route"
import type { ProviderEnvironment } from "../providers/provider"
import { ensureWebPush } from "../push/vapid"
import type { Tx } from "../store/store"
import { actorOf, type DeviceActor } from "./device-actor"
import { readDevices, registerAll } from "./device-batch"
import {
  type NewDevice,
  readDevice,
  readDeviceChange,
  requirePublic,
  requireUser,
} from "./device-input"
import { list, shown, shownAll, stats } from "./device-list"
import * as devices from "./devices"
import { findDevice } from "./find-device"
import * as schemas from "./schemas"
import type { DeviceRow } from "./tables"

interface DeviceParts extends ListParts {
  secrets: Secrets
  providers: Pick<ProviderEnvironment, "allow_private">
}

const ALL = "/v1/devices"
const ONE = `${ALL}/{device_id}` as const

/** What the rows have in common that apps call, too. */
const appRow = <const Path extends string>(method: Method, path: Path) => ({
  ...projectRow(method, path, "push:write"),
  callers: ["app", "key", "console", "user", "subscriber"] as AnyRoute["callers"],
  any_environment: true as const,
})

export const deviceRoutes = (parts: DeviceParts): AnyRoute[] => [
  registerRoute(parts),
  batchRoute(parts),
  ...readRoutes(parts),
  ...changeRoutes(parts),
]

const EXAMPLE = {
  device_id: "phone-1",
  user_id: "user-42",
  platform: "android" as const,
  token: "fcm-token",
  app_version: "4.2.0",
}

const registerRoute = (parts: DeviceParts): AnyRoute =>
  route({
    ...appRow("POST", ALL),
    status: [201, 200],
    summary: "Register a device",
    description:
      "An app calls it at each start. 200 means that the scope knew the `device_id`; fields that are absent stay as they are. A token that another device of the same user or of nobody had replaces that device. The credential decides the scope, and of a subscriber or an end user also the user.",
    body: schemas.DeviceInput,
    example: EXAMPLE,
    read: readDevice,
    response: schemas.Device,
    errors: ["duplicate_device", "subscriber_not_found", "invalid_url"],
    idempotent: true,
    handle: (call) => register(parts, call),
  })

async function register({ store, secrets, providers }: DeviceParts, call: Call<NewDevice>) {
  const { caller, body, claim } = call
  requireUser(caller, body)
  if (body.provider === "webpush") {
    await requirePublic(body.token, providers.allow_private)
    await ensureWebPush(store, secrets, caller)
  }
  return store.tx(async (tx) => {
    const { row, is_new } = await devices.register(tx, await actorOf(tx, caller), body)
    const answer = { data: await shown(tx, caller, row), status: is_new ? 201 : 200 }
    await keepAnswer(tx, claim, answer)
    return answer
  })
}

const BATCH_BYTES = 8_388_608
const BATCH_KEYS = 50_000

const batchRoute = ({ store, secrets, providers }: DeviceParts): AnyRoute =>
  route({
    ...projectRow("POST", `${ALL}/batch`, "push:write"),
    summary: "Register up to 1,000 devices",
    description: "A broken one is named in `results`, and does not stop the others.",
    body: schemas.DeviceBatch,
    example: { devices: [EXAMPLE] },
    readRaw: readDevices,
    response: schemas.DeviceBatchResult,
    limit: BATCH_BYTES,
    most_keys: BATCH_KEYS,
    idempotent: true,
    handle: async ({ caller, body, claim }) => {
      await refuseAnswered(store.read, claim)
      const actor = await store.tx((tx) => actorOf(tx, caller))
      if (body.given.some(({ item }) => item.provider === "webpush")) {
        await ensureWebPush(store, secrets, caller)
      }
      const answer = { data: await registerAll(store, actor, body, providers.allow_private) }
      await store.tx((tx) => keepAnswer(tx, claim, answer))
      return answer
    },
  })

const readRoutes = ({ store, cursors }: DeviceParts): AnyRoute[] => [
  route({
    ...projectRow("GET", ALL, "push:read"),
    summary: "List devices, newest first",
    description: "Filters can be combined.",
    query: schemas.deviceQuery,
    response: schemas.Device,
    handle: (call) => {
      const found = list(store.read, call.project_id, call.query)
      return listPage(call, cursors, {
        ...found,
        list: async (window) => {
          const page = await found.list(window)
          return { ...page, rows: await shownAll(store.read, call.caller, page.rows) }
        },
      })
    },
  }),
  route({
    ...projectRow("GET", `${ALL}/stats`, "push:read"),
    summary: "Count devices",
    description: "By their status, their platform and their provider.",
    response: schemas.DeviceStats,
    handle: async ({ project_id }) => ({ data: await stats(store.read, project_id) }),
  }),
  route({
    ...projectRow("GET", ONE, "push:read"),
    summary: "Show a device",
    description: `${NAMED} 409 means that several scopes have this \`device_id\`.`,
    response: schemas.Device,
    errors: ["device_not_found", "conflict"],
    handle: async ({ project_id, caller, params }) => ({
      data: await shown(
        store.read,
        caller,
        await findDevice(store.read, project_id, params.device_id),
      ),
    }),
  }),
]

const NAMED = "By its `device_id`, or by its id."

const changeRoutes = (parts: DeviceParts): AnyRoute[] => [
  route({
    ...appRow("PATCH", ONE),
    summary: "Change a device",
    description:
      "Fields that are absent stay as they are. A new token makes an expired device active.",
    body: schemas.DeviceChange,
    example: { app_version: "4.3.0", enabled: true },
    read: readDeviceChange,
    response: schemas.Device,
    errors: ["device_not_found", "duplicate_device", "conflict", "invalid_url"],
    handle: async (call) => {
      const { subscription } = call.body
      if (subscription) await requirePublic(subscription.token, parts.providers.allow_private)
      return changed(parts, call, (tx, actor) =>
        devices.change(tx, actor, call.params.device_id, call.body),
      )
    },
  }),
  route({
    ...appRow("DELETE", ONE),
    summary: "Remove a device",
    description: `${NAMED} An app names it by its \`device_id\` alone. What waits for it fails.`,
    response: Deleted,
    errors: ["device_not_found", "conflict"],
    handle: async ({ caller, params }) => {
      const { store } = parts
      const { id } = await store.tx(async (tx) =>
        devices.remove(tx, await actorOf(tx, caller), params.device_id),
      )
      return deleted(id)
    },
  }),
  route({
    ...appRow("POST", `${ONE}/unlink`),
    summary: "Unlink a device from its user",
    description: "For a sign-out: the device stays, and its `user_id` becomes null.",
    response: schemas.Device,
    errors: ["device_not_found", "conflict"],
    handle: (call) =>
      changed(parts, call, (tx, actor) => devices.unlink(tx, actor, call.params.device_id)),
  }),
  route({
    ...projectRow("DELETE", `${ALL}/user/{user_id}`, "push:write"),
    summary: "Remove all devices of a user",
    description: "Those of every scope.",
    response: schemas.RemovedDevices,
    handle: async ({ project_id, params: { user_id } }) => {
      const { store } = parts
      const all = await store.tx((tx) => devices.removeOfUser(tx, project_id, user_id))
      return { data: { user_id, deleted: all } }
    },
  }),
]

async function changed(
  { store }: DeviceParts,
  { caller }: Pick<Call, "caller">,
  change: (tx: Tx, actor: DeviceActor) => Promise<DeviceRow>,
) {
  return store.tx(async (tx) => {
    const row = await change(tx, await actorOf(tx, caller))
    return { data: await shown(tx, caller, row) }
  })
}
