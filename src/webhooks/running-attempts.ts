/** One attempt among those that run. */
export interface RunningAttempt {
  /** Frees its share of the endpoint's concurrency. */
  free(): void
  succeeded(): void
  /** Whether a later attempt of the same endpoint has succeeded already. */
  isOutdone(): boolean
  /** Its result is on disk, or is not written any more. */
  end(): void
}

interface OfEndpoint {
  running: number
  /** The number of the latest attempt among those that succeeded. */
  succeeded: number
}

/** The attempts that run, by endpoint: how many there are, and which began before its last success. */
export class RunningAttempts {
  /** Attempts by endpoint that use its concurrency. */
  readonly busy = new Map<string, number>()
  readonly #endpoints = new Map<string, OfEndpoint>()
  #last = 0

  begin(webhook_id: string): RunningAttempt {
    this.#last += 1
    const number = this.#last
    const endpoint = this.#endpoints.get(webhook_id) ?? { running: 0, succeeded: 0 }
    this.#endpoints.set(webhook_id, endpoint)
    endpoint.running += 1
    this.#count(webhook_id, 1)
    let is_busy = true
    let is_over = false
    const free = () => {
      if (is_busy) this.#count(webhook_id, -1)
      is_busy = false
    }
    return {
      free,
      succeeded: () => {
        endpoint.succeeded = Math.max(endpoint.succeeded, number)
      },
      isOutdone: () => endpoint.succeeded > number,
      end: () => {
        free()
        if (!is_over) endpoint.running -= 1
        is_over = true
        if (endpoint.running === 0) this.#endpoints.delete(webhook_id)
      },
    }
  }

  #count(webhook_id: string, by: number) {
    const busy = (this.busy.get(webhook_id) ?? 0) + by
    if (busy > 0) this.busy.set(webhook_id, busy)
    else this.busy.delete(webhook_id)
  }
}
