import { ApiError } from "../core/errors"

/** Throws 504 `timeout` when `run` takes longer; its signal is aborted then. */
export function withDeadline<Result>(
  limit_ms: number,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController()
  // One promise for every request there is: a race of two would cost it a microsecond more.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      stop.abort()
      const seconds = Math.ceil(limit_ms / 1000)
      reject(
        new ApiError(
          "timeout",
          `The request took longer than ${seconds} seconds. Check its effect before you try again.`,
        ),
      )
    }, limit_ms)
    const beforehand =
      <Value>(settle: (value: Value) => void) =>
      (value: Value) => {
        clearTimeout(timer)
        settle(value)
      }
    run(stop.signal).then(beforehand(resolve), beforehand(reject))
  })
}
