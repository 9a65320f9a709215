import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { countDevices } from "../../src/devices/device-rows"
import { type DeviceRow, devices, type PushProvider } from "../../src/devices/tables"
import type { NewMessage } from "../../src/messages/tables"
import { providerConfigs } from "../../src/providers/tables"
import type { PushContent } from "../../src/push/push-content"
import type { Store } from "../../src/store/store"
import type { ProjectOptions, TestProject, TestService } from "../harness/service"
import { letter } from "../messages/letters"

/** A device of the project, past every rule of how they are registered. */
export async function addDevice(
  store: Store,
  project_id: string,
  given: Partial<DeviceRow> = {},
): Promise<DeviceRow> {
  const [id, at] = [newId(), now()]
  const token = given.token ?? `token-${id}`
  const row: DeviceRow = {
    ...{ id, project_id, device_id: `phone-${id}`, scope: "project", user_id: null },
    ...{ platform: "ios", provider: "apns", token, keys: null, device_name: null },
    token_hash: Bun.SHA256.hash(`${given.provider ?? "apns"}:${token}`, "hex"),
    ...{ app_id: null, app_version: null, os_version: null, locale: null, timezone: null },
    ...{ apns_environment: null, status: "active", status_reason: null, failure_count: 0 },
    ...{ metadata: {}, token_at: at, last_active_at: at, last_success_at: null },
    ...{ created_at: at, updated_at: at, ...given },
  }
  await store.tx(async (tx) => {
    await tx.insert(devices).values(row)
    await countDevices(tx, [{ after: row }])
  })
  return row
}

/** A push message to a device on its way in. */
export function pushLetter(
  device: DeviceRow,
  more: Partial<NewMessage> = {},
  { ttl_seconds, ...content }: Partial<PushContent> & { ttl_seconds?: number } = {},
): NewMessage {
  const { id, device_id: address, provider, platform: sender, project_id, user_id } = device
  const recipient = { email: address, name: null, kind: "to", status: "queued" } as const
  const push = { device: id, provider, ...(ttl_seconds !== undefined && { ttl_seconds }) }
  return letter({
    ...{ channel: "push", project_id, address, sender, sender_domain: null, user_id },
    ...{ units: 1, subject: "Ding", envelope: { push } },
    recipients: [{ ...recipient, status_reason: null }],
    content: { title: "Ding", priority: "high", ...content } satisfies PushContent,
    ...more,
  })
}

/** A project with credentials of these providers, which no message here is sent with. */
export async function pushProject(
  service: TestService,
  providers: readonly PushProvider[] = ["apns"],
  options: ProjectOptions = {},
): Promise<TestProject> {
  const project = await service.project(options)
  await configurePush(service.store, project, providers)
  return project
}

export async function configurePush(
  store: Store,
  { account_id, project_id }: Pick<TestProject, "account_id" | "project_id">,
  providers: readonly PushProvider[],
): Promise<void> {
  const at = now()
  const rows = providers.map((provider) => ({
    ...{ id: newId(), account_id, project_id, kind: "push_provider" as const, provider },
    ...{ name: provider, priority: 1, enabled: true, status: "active" as const },
    ...{ credentials: null, settings: {}, created_at: at, updated_at: at },
  }))
  if (rows.length > 0) await store.tx((tx) => tx.insert(providerConfigs).values(rows))
}
