import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { DeviceRow, PushProvider } from "../devices/tables"
import type { Caller } from "../identity/caller"
import { findAudience } from "../messages/send-fields"
import type { Envelope, NewMessage } from "../messages/tables"
import { routing } from "../providers/routing"
import type { Reader } from "../store/store"
import type { TemplateRendering } from "../templates/rendering"
import { requireSmall } from "./payloads"
import type { PushContent } from "./push-content"
import type { SendPush } from "./push-input"
import { renderPush } from "./render-push"
import { recipientsOf } from "./targets"

export interface PushRules {
  /** Knows the people of each project, their devices and its providers. */
  read: Reader
  templates: TemplateRendering
}

interface PushOrigin {
  caller: Caller
  idempotency_key: string | null
}

/**
 * Everything that may be refused or must wait before the transaction: devices, category, providers, texts and the size
 * of what is built. One message a device; several share a `batch_id`, which is the id of the send.
 */
export async function prepare(
  send: SendPush,
  { caller, idempotency_key }: PushOrigin,
  { read, templates }: PushRules,
): Promise<NewMessage[]> {
  const { account_id, project_id, key_id: api_key_id, project_settings } = caller
  const { category, scheduled_at, tags, metadata, ttl_seconds } = send
  const { devices, subscriber } = await recipientsOf(read, project_id, send.target)
  await findAudience(read, project_id, { category })
  const { sandbox } = project_settings
  const configured = sandbox ? undefined : await requireConfigured(read, project_id, devices)
  const { texts, used } = await renderPush(templates, caller, send, subscriber)
  const content: PushContent = { ...texts, ...send.others }
  requireSmall(content, devices.map(providerOf))
  const batch_id = devices.length > 1 ? newId() : null
  return devices.map((device) =>
    newPush(device, {
      ...{ account_id, project_id, api_key_id, sandbox, idempotency_key, batch_id },
      ...{ content, ttl_seconds, category, scheduled_at, tags, metadata },
      ...{ source: "api", stream: "transactional", is_ready: isReady(device, configured) },
      envelope: { ...(category !== null && { category }), ...(used && { template: used }) },
      template_id: used?.id ?? null,
      subscriber_id: subscriber?.id ?? null,
    }),
  )
}

const providerOf = ({ provider }: DeviceRow) => provider

/** Those that the project configured, paused or not. */
export async function configuredProviders(db: Reader, project_id: string): Promise<Set<string>> {
  const rows = await routing(db, "push_provider", project_id, { recent: true })
  return new Set(rows.map(({ provider }) => provider))
}

/** The configured providers. Throws 400 `push_not_configured` where none of them is that of a device. */
async function requireConfigured(db: Reader, project_id: string, devices: DeviceRow[]) {
  const configured = await configuredProviders(db, project_id)
  if (devices.some((device) => isReady(device, configured))) return configured
  const providers = [...new Set(devices.map(providerOf))]
  return fail("push_not_configured", NOT_CONFIGURED, { channel: "push", providers })
}

export const NOT_CONFIGURED =
  "The project has no credentials for the provider of a device. Set the credentials with `belfry push config set`."

/** Whether a provider takes what is for the device. In the sandbox, nothing is asked. */
export const isReady = ({ provider }: DeviceRow, configured: ReadonlySet<string> | undefined) =>
  configured?.has(provider) ?? true

const notReady = (provider: PushProvider) => ({
  reason: "provider_unavailable",
  text: `The project has no credentials for ${provider}.`,
})

type Carried =
  | "account_id"
  | "project_id"
  | "api_key_id"
  | "sandbox"
  | "stream"
  | "source"
  | "subscriber_id"
  | "category"
  | "template_id"
  | "scheduled_at"
  | "batch_id"

interface NewPush
  extends Pick<NewMessage, Carried>,
    Partial<Pick<NewMessage, "idempotency_key" | "tags" | "metadata" | "fan_out_id" | "refused">> {
  content: PushContent
  envelope: Envelope
  ttl_seconds: number | null
  is_ready: boolean
}

/** The message to one device as it can be accepted. One that is refused takes nothing from the quota. */
export function newPush(device: DeviceRow, push: NewPush): NewMessage {
  const { content, ttl_seconds, is_ready, refused: given, envelope, ...carried } = push
  const { device_id, provider, platform, user_id } = device
  const refused = given ?? (is_ready ? undefined : notReady(provider))
  return {
    idempotency_key: null,
    tags: [],
    metadata: {},
    ...carried,
    id: newId(),
    channel: "push",
    address: device_id,
    sender: platform,
    sender_domain: null,
    subject: content.title ?? null,
    recipients: [
      { email: device_id, name: null, kind: "to", status: "queued", status_reason: null },
    ],
    units: refused ? 0 : 1,
    envelope: {
      ...envelope,
      push: { device: device.id, provider, ...(ttl_seconds !== null && { ttl_seconds }) },
    },
    rfc_message_id: null,
    thread_id: null,
    user_id,
    content,
    ...(refused && { refused, scheduled_at: null }),
    created_at: now(),
  }
}
