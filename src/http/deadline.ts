import { ApiError } from "../core/errors"

/** Throws 504 `timeout` when `run` takes longer; its signal is aborted then. */
export async function withDeadline<Result>(
  limit_ms: number,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    stop.abort()
    const seconds = Math.ceil(limit_ms / 1000)
    late.reject(new ApiError("timeout", `The request took longer than ${seconds} seconds.`))
  }, limit_ms)
  try {
    return await Promise.race([run(stop.signal), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
