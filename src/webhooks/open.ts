import type { Settings } from "../core/config"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import { setRouter } from "../events/emit"
import type { Store } from "../store/store"
import type { AddressRules } from "./address"
import { type Way, wayOf } from "./attempt"
import { DeliveryLoop } from "./delivery-loop"
import { routeEvents } from "./route-events"

/** What the routes of webhooks need besides the store. */
export interface WebhookParts {
  way: Way
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
  address: AddressRules
}

export interface Webhooks {
  parts: WebhookParts
  /** Not started yet. */
  loop: DeliveryLoop
}

interface Surroundings {
  store: Store
  secrets: Secrets
  workers: Workers
  settings: Settings
  /** Whether an operator has paused the queue. */
  isPaused?: () => boolean
}

/** From here on every event is routed to the endpoints that want it. */
export function openWebhooks(around: Surroundings): Webhooks {
  const { store, secrets, workers, settings, isPaused = () => false } = around
  setRouter(routeEvents)
  const way = wayOf(settings, secrets)
  const failures = settings["webhooks.breaker.failures"]
  const address = {
    require_https: settings["webhooks.require_https"],
    allow_private: settings["webhooks.allow_private"],
  }
  const loop = new DeliveryLoop({
    store,
    workers,
    way,
    failures,
    concurrency: settings["webhooks.concurrency"],
    alone: settings.database_url === null,
    isPaused,
  })
  return { parts: { way, failures, address }, loop }
}
