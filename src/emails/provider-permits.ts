import { millis, millisFrom, monotonic } from "../core/time"
import { DeferredError } from "../jobs/work"
import type { ConfigRow } from "../providers/configs"
import type { Outcome } from "../providers/provider"
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

/** The permit of one message, for its time with the providers of its project. */
export interface ProviderPermit {
  /** The attempt begins. */
  begin(): void
  /** The attempt is over, with what came of it, or with nothing where it broke. */
  end(outcome: Outcome | undefined): void
  /** Gives the permit back. An attempt that never began says nothing about the provider. */
  release(): void
}

/**
 * Limits what the providers of projects deliver, by the configuration that is asked first. A relay that
 * hangs may not hold every delivery of the instance. A quick one may, unless other projects have mail
 * too. Delivery by MX has limits of its own, by domain. The instance's own provider has none.
 */
export class ProviderPermits {
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
    if (provider === "direct") return UNLIMITED
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

/** Where nothing is counted. */
export const UNLIMITED: ProviderPermit = { begin: () => {}, end: () => {}, release: () => {} }

const waiting = ({ until, reason }: PermitDenial) =>
  new DeferredError(reason, Math.max(0, (millisFrom(until) - millis()) / 1000))

const isAnswered = (outcome: Outcome): boolean =>
  [outcome, ...outcome.others].some(
    ({ status, fault, reply }) =>
      status !== "retry" || (fault !== "connection" && reply.response !== null),
  )

/** No message is told to come back later than this: meanwhile others may have given up. */
const FARTHEST_SECONDS = 600

/** Keeps what a project wants of a provider's limit: at most so many messages a second. */
export class ProviderRateLimit {
  readonly #per_second: number
  readonly #read: () => number
  #left: number
  #filled_at: number
  #promised = 0

  /** `read` gives milliseconds since some moment. */
  constructor(per_second: number, read: () => number = monotonic) {
    this.#per_second = per_second
    this.#read = read
    this.#left = this.#most
    this.#filled_at = read()
  }

  /**
   * Takes one. Throws DeferredError with a time of its own where this second's are used up. Urgent mail
   * takes it out of the next second's, past all that wait.
   */
  take(is_urgent = false): void {
    const now = this.#read()
    const earned = ((now - this.#filled_at) / 1000) * this.#per_second
    this.#left = Math.min(this.#most, this.#left + earned)
    this.#filled_at = now
    if (this.#left >= (is_urgent ? 1 - this.#most : 1)) {
      this.#left -= 1
      return
    }
    const next = Math.max(this.#promised, now) + 1000 / this.#per_second
    this.#promised = Math.min(next, now + FARTHEST_SECONDS * 1000)
    const text = `This provider gets at most ${this.#per_second} messages a second.`
    throw new DeferredError(text, (this.#promised - now) / 1000)
  }

  /** A slow one still sends one at a time. */
  get #most() {
    return Math.max(1, this.#per_second)
  }
}
