import { sql } from "drizzle-orm"
import { id, index, int, json, ref, table, text, time, uniqueIndex } from "../store/columns"
import { life } from "../store/life"

export const PLATFORMS = ["ios", "android", "web", "macos"] as const

export type Platform = (typeof PLATFORMS)[number]

export const PUSH_PROVIDERS = ["apns", "fcm", "webpush"] as const

export type PushProvider = (typeof PUSH_PROVIDERS)[number]

export const DEVICE_STATUSES = ["active", "disabled", "expired"] as const

export type DeviceStatus = (typeof DEVICE_STATUSES)[number]

/** The keys of a Web Push subscription (RFC 8291, section 2.1), in base64url. */
export interface SubscriptionKeys {
  p256dh: string
  auth: string
}

/** Where push messages are shown: an installed app or a browser, as its app registered it. */
export const devices = table(
  "devices",
  {
    id: id(),
    project_id: ref().notNull(),
    /** The name that the app gave it, unique in its scope. */
    device_id: text().notNull(),
    /** By which credential it was registered (`scope.ts`). */
    scope: text().notNull(),
    /** The external id of a subscriber, or the id of an end user. */
    user_id: text(),
    platform: text<Platform>().notNull(),
    provider: text<PushProvider>().notNull(),
    /** Of Web Push the endpoint. */
    token: text().notNull(),
    /** SHA-256 of the provider and the token: an endpoint may be long. */
    token_hash: text().notNull(),
    keys: json<SubscriptionKeys | null>(),
    device_name: text(),
    app_id: text(),
    app_version: text(),
    os_version: text(),
    locale: text(),
    timezone: text(),
    /** Null: that of the credentials. */
    apns_environment: text<"sandbox" | "production">(),
    status: text<DeviceStatus>().notNull(),
    status_reason: text(),
    /** Failures since the last success. */
    failure_count: int().notNull(),
    metadata: json<Record<string, unknown>>().notNull(),
    /** When the app presented the token last. What a provider says of an earlier time does not count. */
    token_at: time().notNull(),
    last_active_at: time().notNull(),
    last_success_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (device) => [
    index("devices_by_project").on(device.project_id, device.id),
    uniqueIndex("devices_by_name").on(device.project_id, device.device_id, device.scope),
    uniqueIndex("devices_by_token").on(device.project_id, device.scope, device.token_hash),
    index("devices_by_user")
      .on(device.project_id, device.user_id, device.id)
      .where(sql`user_id IS NOT NULL`),
  ],
)
export type DeviceRow = typeof devices.$inferSelect
life(devices, {
  owner: "project",
  ends: "never",
  counts: { name: "devices", by: ["status", "platform", "provider"] },
  personal: { found_by: { external_id: "user_id" }, searched: ["device_name", "metadata"] },
})
