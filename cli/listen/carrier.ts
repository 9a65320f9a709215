import { type Posted, post } from "../post"

const RECEIVER_MILLISECONDS = 30_000

export interface Delivery {
  delivery_id: string
  headers: Record<string, string>
  body: string
}

export interface Carried extends Posted {
  event_id: string
  event_type: string
}

interface Trip {
  event_id: string
  done: boolean
  carried: Promise<Carried>
}

/**
 * Carries deliveries to a receiver, each event once: what the server sends again after a reconnect
 * was either carried already, or is on its way.
 */
export class Carrier {
  readonly #url: string
  readonly #skip_verify: boolean | undefined
  /** In the order of the feed, from the first that is not done. */
  readonly #trips: Trip[] = []
  #place: string | undefined

  constructor(url: string, skip_verify: boolean | undefined) {
    this.#url = url
    this.#skip_verify = skip_verify
  }

  /** The last event before which everything has been carried. */
  get place(): string | undefined {
    return this.#place
  }

  /** Resolves when everything on its way has arrived. */
  async idle(): Promise<void> {
    await Promise.all(this.#trips.map(({ carried }) => carried))
  }

  /** What the receiver answered, and whether it was asked only now. */
  async carry(delivery: Delivery): Promise<{ carried: Carried; is_new: boolean }> {
    const event_id = delivery.headers["webhook-id"] ?? delivery.delivery_id
    const known = this.#trips.find((trip) => trip.event_id === event_id)
    if (known) return { carried: await known.carried, is_new: false }
    const trip: Trip = { event_id, done: false, carried: this.#post(event_id, delivery) }
    this.#trips.push(trip)
    const carried = await trip.carried
    trip.done = true
    while (this.#trips[0]?.done) this.#place = this.#trips.shift()?.event_id
    return { carried, is_new: true }
  }

  async #post(event_id: string, { headers, body }: Delivery): Promise<Carried> {
    const parcel = { url: this.#url, headers, body, timeout: RECEIVER_MILLISECONDS }
    const posted = await post({ ...parcel, skip_verify: this.#skip_verify })
    return { ...posted, event_id, event_type: typeOf(body) }
  }
}

function typeOf(body: string): string {
  const { type } = JSON.parse(body) as { type?: unknown }
  return typeof type === "string" ? type : ""
}
