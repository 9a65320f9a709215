import { newId } from "../../src/core/ids"
import { claimsOf } from "../../src/jobs/claims"
import type { Store } from "../../src/store/store"
import { DeliveryPicker } from "../../src/webhooks/delivery-picker"
import { deliveryRows } from "../../src/webhooks/delivery-rows"
import { engine } from "../harness/store"

const lease = { owner: newId(), lease_ms: 60_000, alone: engine === "sqlite" }

/** Claims due deliveries of one endpoint, as the loop does with so many free slots. */
export async function claimDeliveries(store: Store, webhook_id: string, limit: number) {
  const busy = new Map()
  const picker = new DeliveryPicker({ store, concurrency: 1, busy, isPaused: () => false })
  const { shares } = await picker.pick(1000)
  const share = shares.find(({ partition }) => partition === webhook_id)
  if (!share) return []
  return claimsOf(store, { rows: deliveryRows }, lease).claim({ ...share, limit })
}
