import { totals } from "../store/counters"
import type { Reader } from "../store/store"

/**
 * What a project stores, in bytes, by the counter that is kept in the transactions that write and remove:
 * of messages of each channel what was handed over (content and files), of received and caught mail its raw
 * message. What we make of them besides (parsed texts, the copy that left, indexes) is not counted. Deliveries
 * to webhooks count 1 KB each, and the body that a transform made.
 */
export const STORED = {
  email: "stored_bytes.email",
  push: "stored_bytes.push",
  sms: "stored_bytes.sms",
  in_app: "stored_bytes.in_app",
  received: "stored_bytes.received",
  mailbox: "stored_bytes.mailbox",
  deliveries: "stored_bytes.deliveries",
} as const

const NAMES = Object.values(STORED)

/** The highest share in percent that the owners were told of: no bytes, but kept beside them. */
export const STORED_TOLD = "stored_told"

export const MB = 1024 ** 2

/** What the project stores now. */
export async function storedTotal(
  db: Reader,
  project_id: string,
): Promise<{ used: number; told: number }> {
  const all = await totals(db, project_id, [...NAMES, STORED_TOLD])
  const used = NAMES.reduce((sum, name) => sum + (all.get(name) ?? 0), 0)
  return { used, told: all.get(STORED_TOLD) ?? 0 }
}
