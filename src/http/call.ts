import type { Caller } from "../identity/caller"
import type { Claim } from "./idempotency"

/** One request, as a handler sees it: who calls, and what was understood of it. */
export interface Call<Body = unknown, Query = unknown, Params = object> {
  request: Request
  params: Params
  request_id: string
  ip: string
  caller: Caller
  project_id: string
  body: Body
  query: Query
  /** Present when the request carried an `Idempotency-Key`. */
  claim: Claim | undefined
  /** Aborted when the time limit passes; `request.signal` tells that the caller hung up. */
  signal: AbortSignal
}
