import { createECDH, randomBytes } from "node:crypto"
import type { Reply } from "../harness/client"

/** What a browser gives of a subscription. */
export function subscription(endpoint = "https://93.184.216.34/push/1") {
  const pair = createECDH("prime256v1")
  return {
    endpoint,
    keys: { p256dh: pair.generateKeys("base64url"), auth: randomBytes(16).toString("base64url") },
  }
}

/** A phone, as a key of the project registers it. */
export const phone = (more: object = {}) => ({
  ...{ device_id: "phone-1", user_id: "ann", platform: "android", token: "token-1" },
  ...more,
})

export const data = ({ body }: Reply) => body.data
