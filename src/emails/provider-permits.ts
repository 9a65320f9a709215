import { millis, millisFrom } from "../core/time"
import { DeferredError } from "../jobs/work"
import type { PermitSource, ProviderPermit } from "../providers/failover"
import type { Outcome } from "../providers/provider"
import type { ConfigRow } from "../providers/tables"
import {
  type ConcurrencyLimit,
  type DestinationFeedback,
  isDenied,
  PerDestinationLimits,
  type PerDestinationOptions,
  type PermitDenial,
  type PermitRequest,
} from "./smtp/destination-limits"

/** So many messages are prefetched for each that is on the wire, and each of them has a permit. */
const PREFETCH = 2

export interface ProviderPermitOptions {
  /** Shared with delivery by MX. */
  limit: ConcurrencyLimit
  /** Deliveries at once in all. */
  concurrency: number
  onBacklog?: PerDestinationOptions["onBacklog"]
}

/**
 * Limits what the providers of projects deliver, by the configuration that is asked first. A relay that
 * hangs may not hold every delivery of the instance. A quick one may, unless other projects have mail
 * too. Delivery by MX has limits of its own, by domain. The instance's own provider has none.
 */
export class ProviderPermits implements PermitSource {
  readonly #limits: PerDestinationLimits
  readonly #limit: ConcurrencyLimit

  constructor({ limit, concurrency, onBacklog }: ProviderPermitOptions) {
    this.#limit = limit
    const per_destination = PREFETCH * concurrency
    this.#limits = new PerDestinationLimits({ per_destination, concurrency: limit, onBacklog })
  }

  /** A project has mail, whichever provider delivers it. */
  saw(project_id: string): void {
    this.#limit.saw(project_id)
  }

  /** Rejects with DeferredError where there is no permit now. */
  async acquire(
    { id, provider, name }: ConfigRow,
    request: Omit<PermitRequest, "name">,
  ): Promise<ProviderPermit> {
    const permit = await this.#limits.acquire(id, { ...request, name: `${provider} (${name})` })
    if (isDenied(permit)) throw waiting(permit)
    let feedback: DestinationFeedback = "nothing"
    return {
      begin: () => {
        permit.began = millis()
      },
      end: (outcome) => {
        if (permit.began === undefined) return
        feedback = outcome && isAnswered(outcome) ? "fine" : "late"
      },
      release: () => this.#limits.release(permit, feedback),
    }
  }
}

const waiting = ({ until, reason }: PermitDenial) =>
  new DeferredError(reason, Math.max(0, (millisFrom(until) - millis()) / 1000))

const isAnswered = (outcome: Outcome): boolean =>
  [outcome, ...outcome.others].some(
    ({ status, fault, reply }) =>
      status !== "retry" || (fault !== "connection" && reply.response !== null),
  )
