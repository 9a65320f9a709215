import { millis } from "../../core/time"
import { isDoubtful, isSlow, type Lane, type Place, type Wish } from "./lane"

/** Of all places: what doubtful servers hold for one project, and at most at all. */
const HALF = 1 / 2
const MOST = 3 / 4

/** For so long after somebody else had mail, no server is given every place. */
const OTHERS_MS = 60_000

/** Who is sent away for the crowd comes back this much later, and spaced so that few do at a time. */
const SOONEST_MS = 1_000
const SPACING_MS = 100
const HORIZON_MS = 60_000

/**
 * The places that all lanes of this process have given. What goes to servers that are slow, or have
 * taken nothing yet, gets half of them for one project and three quarters in all, so that mail to a
 * server that is known to be quick finds a place however many others hang.
 */
export class Places {
  readonly #taken = new Set<Place>()
  readonly #concurrency: number
  #latest: string | undefined
  #changed_at = Number.NEGATIVE_INFINITY
  #next_turn = 0

  /** `concurrency`: places that there are. */
  constructor(concurrency: number) {
    this.#concurrency = concurrency
  }

  take(place: Place): void {
    this.#taken.add(place)
  }

  leave(place: Place): void {
    this.#taken.delete(place)
  }

  /** A project has mail, whoever is to deliver it. */
  saw(project_id: string): void {
    if (this.#latest === project_id) return
    if (this.#latest !== undefined) this.#changed_at = millis()
    this.#latest = project_id
  }

  /** How many places one server may hold. */
  get limit(): number {
    const is_shared = millis() - this.#changed_at < OTHERS_MS
    return is_shared ? this.#share(MOST) : Number.POSITIVE_INFINITY
  }

  /** Whether doubtful servers hold as many as they may, for this project or for all. */
  isCrowded({ project_id, is_urgent = false }: Wish): boolean {
    let all = 0
    let own = 0
    const isOne = once(isDoubtful)
    for (const { lane, wish } of this.#taken) {
      if (!isOne(lane)) continue
      all++
      if (wish.project_id === project_id) own++
    }
    return all >= this.#share(MOST) || own >= this.#share(is_urgent ? MOST : HALF)
  }

  /** Whether waiting for the crowd to become smaller is of no use, since it hangs. */
  get is_stuck(): boolean {
    const isOne = once(isSlow)
    const slow = [...this.#taken].filter(({ lane }) => isOne(lane))
    return slow.length >= this.#share(HALF) / 2
  }

  /** When somebody who was sent away for the crowd may come again, in epoch milliseconds. */
  turn(count: number): number {
    const soonest = Math.max(millis() + SOONEST_MS, this.#next_turn)
    const until = Math.min(soonest, millis() + HORIZON_MS)
    this.#next_turn = until + count * SPACING_MS
    return until
  }

  #share = (part: number) => Math.max(1, Math.floor(part * this.#concurrency))
}

/** Asks each lane once, however many places it has given. */
function once(ask: (lane: Lane) => boolean): (lane: Lane) => boolean {
  const known = new Map<Lane, boolean>()
  return (lane) => {
    const said = known.get(lane) ?? ask(lane)
    known.set(lane, said)
    return said
  }
}
