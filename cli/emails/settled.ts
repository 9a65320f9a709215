import type { Client } from "../client"
import type { Email } from "../records"
import { millis, pause } from "../time"

const POLL = 100

/** Nothing more is expected: a relay (`smtp`) says no more after `sent`, the others do. */
export const settled = ({ status, provider }: Pick<Email, "status" | "provider">): boolean =>
  ["delivered", "bounced", "complained", "failed"].includes(status) ||
  (status === "sent" && provider === "smtp")

/** Reads the email until it is settled or `limit` milliseconds are over; the last reading. */
export async function waitUntilSettled(client: Client, id: string, limit: number): Promise<Email> {
  const deadline = millis() + limit
  while (true) {
    const { data } = await client.get<Email>(`/v1/emails/${encodeURIComponent(id)}`)
    if (settled(data) || millis() + POLL > deadline) return data
    await pause(POLL)
  }
}
