import { type Settings, settings } from "../../../src/core/config"
import type { OutgoingPush, PushContext } from "../../../src/push/providers/provider"

export const PUSH_ID = "019a0000-0000-7000-8000-000000000001"

/** What providers of push messages get, with settings of a test. */
export const pushContext = (own: Partial<Settings>): PushContext => ({
  settings: { ...settings(), ...own },
  allow_private: [],
})

interface SomePush extends Partial<Omit<OutgoingPush, "device" | "content">> {
  device?: Partial<OutgoingPush["device"]>
  content?: Partial<OutgoingPush["content"]>
}

/** A push message to one device, with fields of a test. */
export const somePush = ({ device, content, ...more }: SomePush = {}): OutgoingPush => ({
  ...{ message_id: PUSH_ID, push_id: PUSH_ID, to: ["ann-phone"], badge: null },
  project_id: "019a0000-0000-7000-8000-000000000002",
  ack_token: "AAAAAAAAAAAAAAAAAAAAAA",
  ttl_seconds: 3600,
  ...more,
  device: { token: "a1".repeat(32), keys: null, app_id: null, apns_environment: null, ...device },
  content: { title: "Grüße", body: "Ding dong 🔔", priority: "high", ...content },
})
