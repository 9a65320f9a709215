/**
 * Lets a fixed number of tasks run at the same time. The others wait in the order of their arrival.
 */
export class Semaphore {
  #free: number
  #waiting: (() => void)[] = []

  constructor(limit: number) {
    this.#free = limit
  }

  /** Resolves with a permit, which the returned function gives back. A second call of that does nothing. */
  async acquire(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.#permit()
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** A permit if one is free now, else undefined. */
  tryAcquire(): (() => void) | undefined {
    if (this.#free === 0) return undefined
    this.#free -= 1
    return this.#permit()
  }

  #permit(): () => void {
    let ended = false
    return () => {
      if (ended) return
      ended = true
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }
}

/**
 * Limits how many turns are taken at the same time: in all, and of one owner (default: one). A further turn of an owner
 * waits for the earlier turns of this owner. Among the turns that may begin, the one that was asked for first begins first.
 */
export class OwnerTurns {
  readonly #permits: Semaphore
  readonly #turns: number
  readonly #most: { of_one: number; of_all: number }
  #count = 0
  /** By owner: what runs or waits. */
  readonly #owners = new Map<string, { turn: Semaphore; count: number }>()

  /** The second says how many may wait, beside those that have their turn. */
  constructor(
    most_at_once: number,
    most_waiting: { of_one?: number; of_all?: number } = {},
    turns_of_one = 1,
  ) {
    const { of_one = Number.POSITIVE_INFINITY, of_all = Number.POSITIVE_INFINITY } = most_waiting
    this.#permits = new Semaphore(most_at_once)
    this.#turns = turns_of_one
    this.#most = { of_one: of_one + turns_of_one, of_all: of_all + most_at_once }
  }

  /** Resolves with what ends the turn, at its first call. Undefined where too many wait already. */
  acquire(owner: string): Promise<() => void> | undefined {
    const own = this.#owners.get(owner) ?? { turn: new Semaphore(this.#turns), count: 0 }
    if (own.count >= this.#most.of_one || this.#count >= this.#most.of_all) return undefined
    this.#owners.set(owner, own)
    own.count += 1
    this.#count += 1
    return this.#wait(owner, own)
  }

  async #wait(owner: string, own: { turn: Semaphore; count: number }): Promise<() => void> {
    const endTurn = await own.turn.acquire()
    const release = await this.#permits.acquire()
    let has_ended = false
    return () => {
      if (has_ended) return
      has_ended = true
      release()
      endTurn()
      own.count -= 1
      this.#count -= 1
      if (own.count === 0) this.#owners.delete(owner)
    }
  }
}
