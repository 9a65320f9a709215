/** One attempt among those that run. */
export interface AttemptPermit {
  /** Frees its slot, and tells so the first time. */
  free(): void
  /** It succeeded. */
  succeeded(): void
  /** Whether one of the same endpoint that began later has succeeded. */
  isOutdone(): boolean
}

interface Running {
  count: number
  /** Of the latest to begin among those that succeeded: its number. */
  succeeded: number
}

/** The attempts that run: how many of all and of each endpoint, and which of them outdid others. */
export class Slots {
  taken = 0
  /** By endpoint. */
  readonly busy = new Map<string, number>()
  readonly #running = new Map<string, Running>()
  #last = 0

  /** Takes one, until it is freed, which `onFree` hears of. `end` it when it is written. */
  take(webhook_id: string, onFree: () => void): AttemptPermit & { end(): void } {
    this.#last += 1
    const number = this.#last
    const running = this.#running.get(webhook_id) ?? { count: 0, succeeded: 0 }
    this.#running.set(webhook_id, running)
    running.count += 1
    this.#change(webhook_id, 1)
    let is_taken = true
    const free = () => {
      if (!is_taken) return
      is_taken = false
      this.#change(webhook_id, -1)
      onFree()
    }
    return {
      free,
      succeeded: () => {
        running.succeeded = Math.max(running.succeeded, number)
      },
      isOutdone: () => running.succeeded > number,
      end: () => {
        free()
        running.count -= 1
        // Nobody is left whom it could outdo.
        if (running.count === 0) this.#running.delete(webhook_id)
      },
    }
  }

  #change(webhook_id: string, by: number) {
    this.taken += by
    const busy = (this.busy.get(webhook_id) ?? 0) + by
    if (busy > 0) this.busy.set(webhook_id, busy)
    else this.busy.delete(webhook_id)
  }
}
