import { millis, millisFrom } from "../core/time"
import type { Hold } from "../jobs/holds"
import { DeferredError } from "../jobs/work"
import type { ConfigRow } from "../providers/configs"
import type { Outcome } from "../providers/provider"
import type { Places } from "./providers/places"
import { isHold, type LaneOptions, Lanes, type Place, type Report } from "./smtp/permits"

/** Twice as many messages are worked at as are on the wire: what one has in hand is no measure of that. */
const AHEAD = 2

export interface RoomOptions {
  /** Shared with delivery by MX: who is slow, or not known yet, may not take every one. */
  places: Places
  /** Deliveries at once in all. */
  concurrency: number
  onCrowd?: LaneOptions["onCrowd"]
}

interface Asking {
  is_urgent: boolean
  project_id: string
}

/** Of one message: the time that it spends with the providers of its project. */
export interface ProviderPermit {
  /** The attempt begins. */
  begin(): void
  /** It is over: what came of it, or nothing where it broke. */
  end(outcome: Outcome | undefined): void
  /** Gives the place back; what was never begun says nothing about anybody. */
  leave(): void
}

/**
 * Places for what the providers of projects deliver, each by the configuration that is asked first: a
 * relay that hangs may not hold every delivery of the instance. A quick one may, unless other projects
 * have mail too. Delivery by MX is not asked here, since it keeps room by domain; neither is the
 * instance's own provider, which nobody pays with another's.
 */
export class ProviderPermits {
  readonly #lanes: Lanes
  readonly #places: Places

  constructor({ places, concurrency, onCrowd }: RoomOptions) {
    this.#places = places
    this.#lanes = new Lanes({ per_domain: AHEAD * concurrency, places, onCrowd })
  }

  /** A project has mail, whoever is to deliver it. */
  saw(project_id: string): void {
    this.#places.saw(project_id)
  }

  /** Rejects with DeferredError where there is no room now. */
  async enter({ id, provider, name }: ConfigRow, asking: Asking): Promise<ProviderPermit> {
    if (provider === "direct") return UNLIMITED
    const entered = await this.#lanes.enterInLine(id, { ...asking, name: `${provider} (${name})` })
    if (isHold(entered)) throw waiting(entered)
    return this.#room(entered)
  }

  #room(place: Place): ProviderPermit {
    let report: Report = "nothing"
    return {
      begin: () => {
        place.began = millis()
      },
      end: (outcome) => {
        if (place.began === undefined) return
        report = outcome && isAnswered(outcome) ? "fine" : "late"
      },
      leave: () => this.#lanes.leave(place, report),
    }
  }
}

/** Where nobody counts. */
export const UNLIMITED: ProviderPermit = { begin: () => {}, end: () => {}, leave: () => {} }

function waiting({ until, reason }: Hold): DeferredError {
  const at = until === null ? millis() : millisFrom(until)
  return new DeferredError(reason, Math.max(0, (at - millis()) / 1000))
}

const isAnswered = (outcome: Outcome): boolean =>
  [outcome, ...outcome.others].some(
    ({ status, fault, reply }) =>
      status !== "retry" || (fault !== "connection" && reply.response !== null),
  )
