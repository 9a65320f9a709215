import { claimsOf } from "../../src/jobs/claims"
import type { QueuePauses } from "../../src/jobs/holds"
import { Settler } from "../../src/jobs/settler"
import { DeferredError, type Hold, PRIORITIES, type WorkResult } from "../../src/jobs/work-item"
import { type Channels, messageTable } from "../../src/messages/pipeline"
import type { DeliveryAttempt } from "../../src/messages/settle"
import type { Message } from "../../src/messages/status-changes"
import type { Store } from "../../src/store/store"
import { leased, read } from "./letters"

export interface Hand {
  owner?: string
  pauses?: QueuePauses
  /** Claims in memory, where that can be. */
  alone?: boolean
}

/** What a loop does with messages, step by step. */
export function byHand(store: Store, channels: Channels, hand: Hand = {}) {
  const { owner = "me", pauses, alone = false } = hand
  const table = messageTable(store, channels)
  const claims = claimsOf<Message>(store, table, { owner, lease_ms: 30_000, alone })
  const settler = new Settler(store, table, claims)

  async function tried(message: Message): Promise<WorkResult<DeliveryAttempt>> {
    const hold = pauses?.holdOf(table.queueOf(message))
    if (hold) return { hold }
    try {
      return await table.run(message, () => claims.fresh(message))
    } catch (error) {
      if (!(error instanceof DeferredError)) throw error
      return { hold: heldBy(error) }
    }
  }

  async function claim(limit: number): Promise<Message[]> {
    const claimed: Message[] = []
    for (const partition of Object.values(PRIORITIES)) {
      const share = { partition, limit: limit - claimed.length }
      if (share.limit > 0) claimed.push(...(await claims.claim(share)))
    }
    table.onClaim?.(claimed)
    return claimed
  }

  return {
    claims,
    claim,
    /** Tries, and writes nothing of what came of it. */
    tried,
    /** Tries, and writes the result. */
    async work(message: Message) {
      const result = await tried(message)
      await settler.settle(message, result)
      return result
    },
    async claimOne(): Promise<Message> {
      const [message, ...more] = await claim(1)
      if (!message || more.length > 0) throw new Error("exactly one message was expected")
      return message
    },
  }
}

function heldBy({ message: reason, seconds, by }: DeferredError): Hold {
  const until = seconds === null ? null : new Date(Date.now() + seconds * 1000).toISOString()
  return { until, reason, ...(by !== undefined && { by }) }
}

/** Nobody tries any more. */
export async function giveUp(store: Store, message_id: string, reason: string) {
  const { attempt } = await read(store.read, message_id)
  const message = await leased(store, message_id, attempt)
  await concluded(store, message, { retry: reason, schedule: () => undefined })
}

/** Writes the result of a leased message. */
export async function concluded(
  store: Store,
  message: Message,
  result: WorkResult<DeliveryAttempt>,
) {
  const channel = { deliver: () => Promise.reject(new Error("nobody asked")) }
  const channels = { email: channel, push: channel, sms: channel, in_app: channel }
  const table = messageTable(store, channels)
  const lease = { owner: message.owner ?? "", lease_ms: 30_000, alone: false }
  await new Settler(store, table, claimsOf<Message>(store, table, lease)).settle(message, result)
}
