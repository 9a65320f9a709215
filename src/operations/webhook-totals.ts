import { and, eq, inArray, isNull, type SQL, sql } from "drizzle-orm"
import { HELD, LEASED, READY } from "../jobs/work-item"
import type { Reader } from "../store/store"
import { storedBytes } from "../webhooks/stored-deliveries"
import { deliveries, webhooks, webhookTotals } from "../webhooks/tables"
import { type Totals, totalsOfOne } from "../webhooks/totals"
import { countInSteps } from "./counted-rows"

/** Totals of an endpoint that differ from its rows. */
export interface WrongTotals {
  webhook_id: string
  told: Totals
  counted: Totals
}

/** Counts the deliveries of each endpoint of a project in steps, with a pause behind each. */
export async function* wrongTotals(
  db: Reader,
  project_id: string,
  pause: () => Promise<void>,
): AsyncGenerator<WrongTotals> {
  for (const webhook_id of await endpointsOf(db, project_id)) {
    const told = await totalsOfOne(db, webhook_id)
    const { id, state, owner } = deliveries
    const ours = eq(deliveries.webhook_id, webhook_id)
    // Added up, not filtered: a step that looks for open ones would pass all that have ended.
    const countOf = (condition: SQL | undefined) => {
      const adds = sql<number>`CASE WHEN ${condition} THEN 1 ELSE 0 END`
      return countInSteps(db, { walked: id, where: ours, adds }, pause)
    }
    const counted = {
      deliveries: await countInSteps(db, { walked: id, where: ours }, pause),
      open: await countOf(inArray(state, [READY, LEASED, HELD])),
      held: await countOf(and(eq(state, HELD), isNull(owner))),
    }
    const is_right = counted.deliveries === told.deliveries && counted.open === told.open
    if (!is_right || counted.held !== told.held) yield { webhook_id, told, counted }
    await pause()
  }
}

/** What the deliveries of a project store, from their rows. */
export async function storedByDeliveries(
  db: Reader,
  project_id: string,
  pause: () => Promise<void>,
): Promise<number> {
  const { id: walked, webhook_id } = deliveries
  let bytes = 0
  for (const id of await endpointsOf(db, project_id)) {
    bytes += await countInSteps(db, { walked, where: eq(webhook_id, id), adds: storedBytes }, pause)
    await pause()
  }
  return bytes
}

/** Those that are there, and deleted ones with deliveries. */
async function endpointsOf(db: Reader, project_id: string): Promise<Set<string>> {
  const { webhook_id } = webhookTotals
  const counted = db.selectDistinct({ webhook_id }).from(webhookTotals)
  const there = db.select({ webhook_id: webhooks.id }).from(webhooks)
  const rows = [
    ...(await counted.where(eq(webhookTotals.project_id, project_id))),
    ...(await there.where(eq(webhooks.project_id, project_id))),
  ]
  return new Set(rows.map((row) => row.webhook_id))
}
