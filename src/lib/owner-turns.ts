import { Semaphore } from "./semaphore"

/** An owner has one turn at a time, and so many owners have one at once. The others wait, one of each owner first. */
export class OwnerTurns {
  readonly #permits: Semaphore
  readonly #most_waiting: number
  /** By owner: what runs or waits. */
  readonly #owners = new Map<string, { turn: Semaphore; count: number }>()

  /** `most_waiting` counts those of one owner, beside the one that has its turn. */
  constructor(most_at_once: number, most_waiting = Number.POSITIVE_INFINITY) {
    this.#permits = new Semaphore(most_at_once)
    this.#most_waiting = most_waiting
  }

  /** Resolves with what ends the turn. Undefined where too many of the owner wait already. */
  acquire(owner: string): Promise<() => void> | undefined {
    const own = this.#owners.get(owner) ?? { turn: new Semaphore(1), count: 0 }
    if (own.count > this.#most_waiting) return undefined
    this.#owners.set(owner, own)
    own.count += 1
    return this.#wait(owner, own)
  }

  async #wait(owner: string, own: { turn: Semaphore; count: number }): Promise<() => void> {
    const endTurn = await own.turn.acquire()
    const release = await this.#permits.acquire()
    return () => {
      release()
      endTurn()
      own.count -= 1
      if (own.count === 0) this.#owners.delete(owner)
    }
  }
}
