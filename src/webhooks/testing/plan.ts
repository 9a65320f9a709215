import { now } from "../../core/time"
import { record } from "../../events/emit"
import { exampleData } from "../../events/trigger"
import type { Caller } from "../../identity/caller"
import type { Tx } from "../../store/store"
import { deliveryOf, plan } from "../route-events"
import * as webhooks from "../webhooks"

const TEST = "webhook.test"

/**
 * An event of this type for one endpoint alone, and its delivery, whose id is returned. Anything
 * but a plain test says in its data that it did not happen.
 */
export async function planTest(
  tx: Tx,
  caller: Caller,
  webhook_id: string,
  type: string,
): Promise<string> {
  const { account_id, project_id } = caller
  const webhook = await webhooks.find(tx, project_id, webhook_id)
  const plain = { message: "A test of your endpoint.", webhook_id, timestamp: now() }
  const data = type === TEST ? plain : { ...exampleData(type), simulated: true }
  const wanted = { account_id, project_id, subject_id: webhook_id, type, data }
  const planned = (await record(tx, [wanted])).map((event) => deliveryOf(webhook, event, "test"))
  await plan(tx, planned)
  return planned.map(({ id }) => id).join()
}
