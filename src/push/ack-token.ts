import { timingSafeEqual } from "node:crypto"
import type { Secrets } from "../core/secrets"

const BYTES = 16

/** What proves that a request comes from the device that got the push message. It is derived, so nothing stores it. */
export const ackToken = (secrets: Pick<Secrets, "mac">, push_id: string): string =>
  macOf(secrets, push_id).toString("base64url")

export function isAckToken(secrets: Pick<Secrets, "mac">, push_id: string, token: string): boolean {
  const given = Buffer.from(token, "base64url")
  return given.length === BYTES && timingSafeEqual(given, macOf(secrets, push_id))
}

const macOf = (secrets: Pick<Secrets, "mac">, push_id: string) =>
  secrets.mac("push ack", push_id).subarray(0, BYTES)
