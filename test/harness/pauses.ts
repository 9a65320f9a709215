import { type CountQueues, countJobs } from "../../src/jobs/counts"
import { keepRunning } from "../../src/jobs/every"
import { QueuePauses } from "../../src/jobs/holds"
import { jobRows } from "../../src/jobs/jobs"
import { countMessages, messageRows } from "../../src/messages/pipeline"
import type { Store } from "../../src/store/store"
import { countDeliveries, deliveryRows } from "../../src/webhooks/delivery-rows"

/** The pauses of a server, of the queues that are named. */
export const testPauses = (
  store: Store,
  names = ["email"],
  counts: CountQueues[] = [countMessages(), countJobs(), countDeliveries],
) => new QueuePauses(store, { names, tables: [messageRows, deliveryRows, jobRows], counts })

/** As a running server follows them. Returns how to stop that. */
export async function followPauses(store: Store, pauses: QueuePauses) {
  await pauses.load()
  const run = () => pauses.follow()
  return keepRunning(store, [{ name: "paused queues", every_ms: 200, by: "node", run }])
}
