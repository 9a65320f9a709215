import { ApiError } from "../core/errors"
import { monotonic } from "../core/time"

interface RunningRequest {
  ends_at: number
  stop: AbortController
  reject: (error: ApiError) => void
}

/** Ends what takes too long. One timer watches all requests that have the usual time, for it waits for the oldest. */
export class Deadlines {
  readonly #usual_ms: number
  readonly #running = new Set<RunningRequest>()
  #timer: Timer | undefined

  constructor(usual_ms: number) {
    this.#usual_ms = usual_ms
  }

  /** Throws 504 `timeout` when `run` takes longer; its signal is aborted then. */
  run<Result>(
    run: (signal: AbortSignal) => Promise<Result>,
    limit_ms = this.#usual_ms,
  ): Promise<Result> {
    const stop = new AbortController()
    // One promise for every request there is: a race of two would cost it a microsecond more.
    return new Promise((resolve, reject) => {
      const request = { ends_at: monotonic() + limit_ms, stop, reject }
      const timer =
        limit_ms === this.#usual_ms
          ? this.#watch(request)
          : setTimeout(end, limit_ms, request, limit_ms)
      const forget = () => {
        clearTimeout(timer)
        this.#running.delete(request)
      }
      run(stop.signal).then(
        (result) => {
          forget()
          resolve(result)
        },
        (error) => {
          forget()
          reject(error)
        },
      )
    })
  }

  #watch(request: RunningRequest): undefined {
    this.#running.add(request)
    this.#timer ??= setTimeout(this.#look, this.#usual_ms).unref()
  }

  #look = () => {
    this.#timer = undefined
    const now = monotonic()
    for (const request of this.#running) {
      if (request.ends_at > now) {
        this.#timer = setTimeout(this.#look, request.ends_at - now).unref()
        return
      }
      this.#running.delete(request)
      end(request, this.#usual_ms)
    }
  }
}

function end({ stop, reject }: RunningRequest, limit_ms: number): void {
  stop.abort()
  const seconds = Math.ceil(limit_ms / 1000)
  const message = `The request took longer than ${seconds} seconds. Check its effect before you try again.`
  reject(new ApiError("timeout", message))
}
