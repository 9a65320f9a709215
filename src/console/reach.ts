import { RequestError } from "./request-error"

const LONGEST_MILLISECONDS = 30_000

/** A request to this server. Throws RequestError with status 0 where nothing answers. */
export async function reach(path: string, init: RequestInit): Promise<Response> {
  const late = AbortSignal.timeout(LONGEST_MILLISECONDS)
  const signal = init.signal ? AbortSignal.any([late, init.signal]) : late
  try {
    return await fetch(path, {
      credentials: "same-origin",
      redirect: "error",
      ...init,
      signal,
    })
  } catch {
    throw new RequestError(0, "unreachable", "The server does not answer. Is it still running?")
  }
}
