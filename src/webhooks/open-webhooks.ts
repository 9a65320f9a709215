import type { Settings } from "../core/config"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import { WorkLoop } from "../jobs/loop"
import type { WorkNode } from "../jobs/work-nodes"
import type { Store } from "../store/store"
import { DeliveryPicker } from "./delivery-picker"
import { DeliveryTable } from "./delivery-work"
import type { EndpointUrlRules } from "./endpoint-input"
import type { RequestSettings } from "./receiver"
import { startRouting } from "./route-events"

/**
 * The length of a lease. Leases are kept every ten seconds; a claim that no process keeps is
 * released after this time.
 */
const LEASE_MILLISECONDS = 30_000

export interface WebhookParts {
  requests: RequestSettings
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
  address: EndpointUrlRules
}

interface Surroundings {
  store: Store
  secrets: Secrets
  workers: Workers
  settings: Settings
  /** Of this process; without it the loop stands alone, as in tests. */
  node?: Pick<WorkNode, "loop">
  isPaused?: () => boolean
}

/** From here on every event is routed to the endpoints that want it. */
export function openWebhooks(around: Surroundings) {
  const { store, secrets, workers, settings, node, isPaused = () => false } = around
  startRouting()
  const requests = {
    secrets,
    timeout_ms: settings["webhooks.timeout"],
    allow_private: settings["webhooks.allow_private"],
  }
  const failures = settings["webhooks.breaker.failures"]
  const address = {
    require_https: settings["webhooks.require_https"],
    allow_private: settings["webhooks.allow_private"],
  }
  const table = new DeliveryTable({ store, workers, requests, failures })
  const concurrency = settings["webhooks.concurrency"]
  const { busy } = table.running
  const picker = new DeliveryPicker({ store, concurrency, busy, isPaused })
  const work = { table, picker, concurrency, lease_ms: LEASE_MILLISECONDS, prefetches: false }
  const alone = settings.database_url === null
  const loop = new WorkLoop({ alone, ...node?.loop, ...work, store })
  return { parts: { requests, failures, address }, loop }
}
