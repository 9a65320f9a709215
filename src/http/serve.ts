import { Type } from "@sinclair/typebox"
import type { Elysia } from "elysia"
import type { Caller } from "../accounts/caller"
import type { ApiError } from "../core/errors"
import { newRequestId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { engine } from "../store/columns"
import type { Store } from "../store/store"
import type { Meter } from "../usage/meter"
import { DEFAULT_LIMIT_BYTES, readForm, readJson, refuseDeclared } from "./body"
import type { Call } from "./call"
import { clientAddress } from "./client-address"
import { withDeadline } from "./deadline"
import { type HeaderFields, respond, respondError } from "./envelope"
import { type Admitted, Guard, type VerifyAccess } from "./guard"
import * as idempotency from "./idempotency"
import { absence } from "./not-found"
import { Problems } from "./problems"
import { type Quota, quotaHeaders, RateLimits } from "./rate-limit"
import type { Answer, AnyRoute } from "./route"
import { SharedWindows } from "./shared-windows"
import { pathOf, queryOf } from "./target"
import { check, readQuery, refuseUnknown } from "./validate"

const TIME_LIMIT_MILLISECONDS = 30_000
const OWN_REQUEST_ID = /^[A-Za-z0-9_-]{8,64}$/

export interface ServeOptions {
  store: Store
  secrets: Secrets
  trusted_proxies: string[]
  verifyAccess: VerifyAccess
  meter: Meter
  /** Throws 503 while starting, draining or out of storage; asked before anything is read. */
  refuseWhileUnwell: (route: AnyRoute) => void
  /** Of one request; 30 s without it. */
  time_limit_ms?: number | undefined
}

interface Peer {
  requestIP(request: Request): { address: string } | null
}

interface State {
  route: AnyRoute
  request: Request
  params: Record<string, string>
  id: string
  ip: string
  quota?: Quota
  caller?: Caller
}

/**
 * Puts every row of the table on the router, each behind the same order of checks, and 404 with
 * the methods of a known path behind everything else.
 */
export function mount(app: Elysia, routes: AnyRoute[], options: ServeOptions) {
  const desk = new Desk(options)
  const reasonFor = absence(routes)
  app.onError(({ code, request, server, error }) => {
    if (code === "NOT_FOUND") return desk.absent(request, server as Peer | null, reasonFor(request))
    return respondError(error, requestId(request), {})
  })
  for (const route of routes) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1")
    const handler = ({ request, params, server }: Context) =>
      desk.answer(route, request, params ?? {}, server)
    app.route(route.method, path, handler as never)
    if (route.method === "GET") app.route("HEAD", path, handler as never)
  }
}

interface Context {
  request: Request
  /** Absent where the path has none. */
  params: Record<string, string> | undefined
  server: Peer | null
}

class Desk {
  readonly #options: ServeOptions
  readonly #limits: RateLimits
  readonly #guard: Guard
  readonly #time_limit_ms: number
  readonly #running = new idempotency.Running()

  constructor(options: ServeOptions) {
    this.#options = options
    this.#time_limit_ms = options.time_limit_ms ?? TIME_LIMIT_MILLISECONDS
    const { store, verifyAccess } = options
    this.#limits = new RateLimits(engine === "postgres" ? new SharedWindows(store) : undefined)
    this.#guard = new Guard(store, this.#limits, verifyAccess)
  }

  async answer(
    route: AnyRoute,
    request: Request,
    params: Record<string, string>,
    server: Peer | null,
  ): Promise<Response> {
    const ip = this.#addressOf(request, server)
    const state: State = { route, request, params, id: requestId(request), ip }
    try {
      const answer = await withDeadline(this.#time_limit_ms, (signal) => this.#run(state, signal))
      return respond(answer, route.status[0], state.id, headersOf(state))
    } catch (error) {
      state.quota ??= this.#limits.see(ip) // a stranger's answers carry the window of his address
      const { page } = route
      const told = { method: request.method, ...(page && { page }) }
      return respondError(error, state.id, headersOf(state), told)
    }
  }

  /** The answer for what is not in the table, with the headers of every other answer. */
  absent(request: Request, server: Peer | null, error: ApiError): Response {
    const ip = this.#addressOf(request, server)
    const headers = pathOf(request).startsWith("/v1") ? quotaHeaders(this.#limits.see(ip)) : {}
    return respondError(error, requestId(request), headers)
  }

  #addressOf(request: Request, server: Peer | null): string {
    const peer = server?.requestIP(request)?.address ?? "127.0.0.1"
    return clientAddress(peer, request.headers, this.#options.trusted_proxies)
  }

  /** The order of the contract, 00 section 6: whoever fails two checks hears of the first. */
  async #run(state: State, signal: AbortSignal): Promise<Answer> {
    const { route, request } = state
    const limit = route.limit ?? DEFAULT_LIMIT_BYTES
    refuseDeclared(request, limit)
    const onCaller = (admitted: Admitted) => remember(state, admitted)
    if (route.callers.includes("none")) await this.#guard.admitAnybody(state, onCaller)
    else await this.#guard.admit(state, onCaller)
    this.#options.refuseWhileUnwell(route)

    const read = route.page ? readForm : readJson
    const raw = route.method === "GET" ? {} : await read(request, limit)
    const caller = state.caller as Caller
    const { project_id } = caller
    this.#options.meter.count(caller)
    const { id: request_id, params, ip } = state
    const call = { request, params, request_id, ip, caller, project_id, signal }
    const path = pathOf(request)
    const claim = route.idempotent
      ? idempotency.claimOf(request, ownerOf(caller, route), path, raw)
      : undefined
    if (!claim) return handle(route, { ...call, claim }, raw)

    this.#running.begin(claim)
    try {
      return await this.#once(route, { ...call, claim }, raw)
    } finally {
      this.#running.end(claim)
    }
  }

  /**
   * Almost every request is a first one, so it is asked for an earlier answer only when it fails:
   * a handler takes the claim in the transaction of its work, and there a second one fails. It is
   * told the first answer even where it would be refused now.
   */
  async #once(route: AnyRoute, call: Claimed, raw: unknown): Promise<Answer> {
    try {
      return await handle(route, call, raw)
    } catch (error) {
      const stored = await this.#lookup(route, call.claim)
      if (stored) return stored
      const is_old = error instanceof idempotency.AlreadyAnswered && call.claim.renewed
      if (is_old) return await handle(route, call, raw)
      throw error
    }
  }

  /** The answer as it was, under the id of the request that asks for it again. */
  async #lookup({ sealed }: AnyRoute, claim: idempotency.Claim): Promise<Answer | undefined> {
    const { store, secrets } = this.#options
    const stored = await idempotency.lookup(store.read, claim)
    if (!stored) return undefined
    const text = sealed ? secrets.open(stored.answer, claim.request) : stored.answer
    const kept = JSON.parse(text) as { top?: object; data: unknown; meta?: object }
    return { ...kept, status: stored.status, headers: { "idempotent-replayed": "true" } }
  }
}

function handle(route: AnyRoute, call: Unread, raw: unknown): Promise<Answer> | Answer {
  const problems = new Problems()
  const strict = call.request.headers.get("x-strict") === "1"
  const body = readBody(route, raw, strict, problems)
  const query = readSearch(route, call.request, strict, problems)
  problems.throwIfAny()
  return route.handle({ ...call, body, query } as Call<never, never>)
}

type Claimed = Unread & { claim: idempotency.Claim }

type Unread = Omit<Call, "body" | "query">

/** What a route without a schema knows. */
const NOTHING = Type.Object({})

function readBody(route: AnyRoute, raw: unknown, strict: boolean, problems: Problems): unknown {
  if (strict) refuseUnknown(route.body ?? NOTHING, raw, problems)
  if (route.read) return route.read(raw, problems)
  if (route.body) check(route.body, raw, problems)
  return raw
}

function readSearch(route: AnyRoute, request: Request, strict: boolean, problems: Problems) {
  if (!route.query && !strict) return {}
  const given = queryOf(request)
  if (strict) refuseUnknown(route.query ?? NOTHING, Object.fromEntries(given), problems)
  return route.query ? readQuery(route.query, given, problems) : {}
}

/** An answer that holds a secret is only repeated to the very credential that caused it. */
const ownerOf = (
  { project_id, account_id, user_id, key_id }: Caller,
  { sealed }: AnyRoute,
): idempotency.Owner => ({
  owner_id: project_id || account_id || (user_id ?? ""),
  credential: sealed ? (key_id ?? user_id) : null,
})

const requestId = ({ headers }: Request) => {
  const own = headers.get("x-request-id")
  return own && OWN_REQUEST_ID.test(own) ? own : newRequestId()
}

function remember(state: State, { caller, quota }: Admitted) {
  state.caller = caller
  state.quota = quota
}

function headersOf({ caller, quota, route }: State): HeaderFields {
  const headers: HeaderFields = quota && route.path.startsWith("/v1") ? quotaHeaders(quota) : {}
  if (!caller || caller.kind === "none") return headers
  headers["x-account-sending-status"] = caller.sending_status
  if (caller.sending_status_reason) {
    headers["x-account-sending-status-reason"] = caller.sending_status_reason
  }
  return headers
}
