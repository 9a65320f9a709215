import type { Settings } from "../core/config"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import { setRouter } from "../events/emit"
import type { Store } from "../store/store"
import type { RequestSettings } from "./attempt"
import { DeliveryLoop } from "./delivery-loop"
import type { EndpointUrlRules } from "./endpoint-url"
import { routeEvents } from "./route-events"

/** What the routes of webhooks need besides the store. */
export interface WebhookParts {
  requests: RequestSettings
  /** Failed attempts in a row that disable an endpoint. */
  failures: number
  address: EndpointUrlRules
}

export interface OpenedWebhooks {
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
export function openWebhooks(around: Surroundings): OpenedWebhooks {
  const { store, secrets, workers, settings, isPaused = () => false } = around
  setRouter(routeEvents)
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
  const loop = new DeliveryLoop({
    store,
    workers,
    requests,
    failures,
    concurrency: settings["webhooks.concurrency"],
    alone: settings.database_url === null,
    isPaused,
  })
  return { parts: { requests, failures, address }, loop }
}
