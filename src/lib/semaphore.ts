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
