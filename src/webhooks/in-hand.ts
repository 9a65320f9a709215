import { notInArray, type SQL } from "drizzle-orm"
import { monotonic } from "../core/time"
import { deliveries } from "./tables"

/**
 * Where one process holds the file, what it attempts it only remembers: the row says nothing until
 * the end is written, and a process that dies has outcome nothing. Everything that changes open deliveries
 * ask here first. An attempt that takes long is leased in its row, too (`slowOnes`), for others to
 * see that it runs.
 */
const in_hand = new Map<string, Holding>()
const by_webhook = new Map<string, number>()

interface Held {
  id: string
  webhook_id: string
  /** Another one for each claim. */
  owner: string | null
}

interface Holding {
  owner: string
  /** By `monotonic`. */
  since: number
  is_leased: boolean
}

/** Whether an attempt of the delivery runs that its row may not tell of. */
export const isInHand = (id: string): boolean => in_hand.has(id)

/** Whether this very claim still counts. */
export const isStillInHand = ({ id, owner }: Pick<Held, "id" | "owner">): boolean =>
  in_hand.get(id)?.owner === owner

/** From here on nobody else claims, holds or repeats the delivery, until `letGo`. */
export function takeInHand({ id, webhook_id }: Omit<Held, "owner">, owner: string) {
  in_hand.set(id, { owner, since: monotonic(), is_leased: false })
  by_webhook.set(webhook_id, inHandOf(webhook_id) + 1)
}

export function letGo(list: Iterable<Held>) {
  for (const one of list) {
    if (!isStillInHand(one)) continue
    in_hand.delete(one.id)
    const left = inHandOf(one.webhook_id) - 1
    if (left > 0) by_webhook.set(one.webhook_id, left)
    else by_webhook.delete(one.webhook_id)
  }
}

/** How many of the endpoint's deliveries are in hand. */
export const inHandOf = (webhook_id: string): number => by_webhook.get(webhook_id) ?? 0

/** Excludes them from a query of open deliveries. */
export const notInHand = (): SQL | undefined =>
  in_hand.size === 0 ? undefined : notInArray(deliveries.id, [...in_hand.keys()])

/** Its end is about to be written: it need not be leased any more. */
export function willEnd({ id, owner }: Pick<Held, "id" | "owner">) {
  const holding = in_hand.get(id)
  if (holding?.owner === owner) holding.is_leased = true
}

/** Of these, what runs longer than `milliseconds` and is not leased yet; it counts as leased now. */
export function slowOnes<One extends Held>(list: Iterable<One>, milliseconds: number): One[] {
  const begun = monotonic() - milliseconds
  const slow: One[] = []
  for (const one of list) {
    const holding = in_hand.get(one.id)
    if (!holding || holding.owner !== one.owner || holding.is_leased) continue
    if (holding.since > begun) continue
    holding.is_leased = true
    slow.push(one)
  }
  return slow
}
