import type { Elysia } from "elysia"
import { type ApiError, type ErrorCode, fail, Problems } from "../core/errors"
import { newRequestId } from "../core/ids"
import { maskAlso } from "../core/log"
import type { Secrets } from "../core/secrets"
import { monotonic } from "../core/time"
import type { Workers } from "../core/workers"
import type { Caller } from "../identity/caller"
import type { RequestLog } from "../request-log/request-log"
import type { Store } from "../store/store"
import type { Meter } from "../tenancy/usage"
import {
  bodyOf,
  DEFAULT_LIMIT_BYTES,
  isForm,
  type RequestBody,
  readBytes,
  readForm,
  readJson,
  refuseDeclared,
} from "./body"
import { BodyMemory } from "./body-memory"
import { corsHeaders, isForBrowsers, preflight, requireOwnPage } from "./cors"
import { Deadlines } from "./deadlines"
import { asApiError, type HeaderFields, respond, respondError } from "./envelope"
import { type Admission, type CredentialVerifiers, Guard } from "./guard"
import * as idempotency from "./idempotency"
import type { RecentTraffic } from "./listener"
import { quotaHeaders, type RateLimits } from "./rate-limits"
import { isResendClient, resendArea } from "./resend-client"
import type { AnyRoute, Call, RouteAnswer } from "./route"
import type { ServerHealth } from "./server-health"
import { isAnybodys } from "./shown-credentials"
import { requireUpgrade, Sockets, type SocketTimes, Upgrade, type Upgrader } from "./sockets"
import {
  absence,
  asksForPage,
  clientAddress,
  hiddenByLiterals,
  looksOf,
  pathOf,
  shownPath,
} from "./target"
import { refusing, warningOfNearMisses } from "./unknown-fields"
import { readBody, readSearch } from "./validate"

const TIME_LIMIT_MILLISECONDS = 30_000
/** The refusal of a request that took too long must still get through. */
const SPARE_SECONDS = 5
const OWN_REQUEST_ID = /^[A-Za-z0-9_-]{8,64}$/

export interface RequestHandlerOptions extends CredentialVerifiers {
  store: Store
  secrets: Secrets
  /** The public address of this server, as its own pages name it. */
  base_url: () => string
  /** Asked at every request: they may change while the server runs. */
  trusted_proxies: () => string[]
  /** Of every server that callers of this process reach. */
  limits: RateLimits
  meter: Meter
  requests: Pick<RequestLog, "add">
  traffic: Pick<RecentTraffic, "note">
  /** Throws 503 while starting, draining or out of storage; asked before anything is read. */
  health: Pick<ServerHealth, "refuse">
  /** Parse what would hold the main thread. */
  workers: Pick<Workers, "run">
  /** For the bodies of all requests together; 128 without it. */
  body_memory_mb?: number | undefined
  /** Milliseconds since some moment: what slow bodies are measured by. Tests move it. */
  body_time?: (() => number) | undefined
  /** What a browser is shown that asks for a page where there is none; without it the error itself. */
  absent_page?: AnyRoute["page"]
  /** Of one request; 30 s without it. */
  time_limit_ms?: number | undefined
  socket_times?: SocketTimes | undefined
}

/**
 * Puts every row of the table on the router, each behind the same order of checks, and 404 with
 * the methods of a known path behind everything else.
 */
export function mountRoutes(app: Elysia, routes: AnyRoute[], options: RequestHandlerOptions) {
  const handler = new RequestHandler(options)
  const reasonFor = absence(routes)
  app.onError(({ code, request, server, error }) => {
    if (code === "NOT_FOUND")
      return handler.absent(request, server as Upgrader | null, reasonFor(request))
    return respondError(error, requestId(request), {}, { path: pathOf(request) })
  })
  for (const route of routes) {
    for (const look of looksOf(route)) maskAlso(look)
    const path = routerPath(route.path)
    const answer = ({ request, params, server }: Context) =>
      handler.answer(route, request, readable(params ?? {}), server)
    app.route(route.method, path, answer as never)
    if (route.method === "GET") app.route("HEAD", path, answer as never)
  }
  for (const { method, path } of hiddenByLiterals(routes)) {
    const answer = ({ request, server }: Context) =>
      handler.absent(request, server, reasonFor(request))
    for (const one of method === "GET" ? ["GET", "HEAD"] : [method])
      app.route(one, routerPath(path), answer as never)
  }
  for (const [path, rows] of Map.groupBy(routes.filter(isForBrowsers), ({ path }) => path)) {
    const answer = ({ request, server }: Context) =>
      handler.answerPreflight(rows, request, server) ??
      handler.absent(request, server, reasonFor(request))
    app.route("OPTIONS", routerPath(path), answer as never)
  }
}

/** `{name}` is `:name` for the router. */
const routerPath = (path: string) => path.replaceAll(/\{(\w+)\}/g, ":$1")

/** A segment that is no UTF-8 arrives as null. It names no record, and neither does NUL. */
const readable = (params: Record<string, string | null>): Record<string, string> =>
  Object.values(params).includes(null)
    ? Object.fromEntries(Object.entries(params).map(([name, value]) => [name, value ?? "\0"]))
    : (params as Record<string, string>)

interface Context {
  request: Request
  /** Absent where the path has none. */
  params: Record<string, string | null> | undefined
  server: Upgrader | null
}

interface State extends Admission {
  id: string
  path: string
  /** Near misses among the fields of the request. */
  warnings: Problems
  error_code?: ErrorCode
}

/** Where every request comes: checks in their order, the handler, the answer. */
class RequestHandler {
  readonly #options: RequestHandlerOptions
  readonly #limits: RateLimits
  readonly #guard: Guard
  readonly #deadlines: Deadlines
  readonly #running = new idempotency.RunningClaims()
  readonly #sockets: Sockets
  readonly #bodies: BodyMemory

  constructor(options: RequestHandlerOptions) {
    this.#options = options
    this.#deadlines = new Deadlines(options.time_limit_ms ?? TIME_LIMIT_MILLISECONDS)
    const { store, body_memory_mb: memory_mb, body_time } = options
    this.#bodies = new BodyMemory({ memory_mb, ...(body_time && { now: body_time }) })
    this.#sockets = new Sockets(options.socket_times)
    this.#limits = options.limits
    this.#guard = new Guard(store, this.#limits, options)
  }

  async answer(
    route: AnyRoute,
    request: Request,
    params: Record<string, string>,
    server: Upgrader | null,
  ): Promise<Response> {
    const started = monotonic()
    this.#options.traffic.note()
    const ip = this.#addressOf(request, server)
    const path = pathOf(request)
    const state: State = {
      route,
      request,
      params,
      path,
      ip,
      id: requestId(request),
      warnings: new Problems(),
    }
    const response = await this.#respond(state, server)
    if (!route.unlogged) this.#note(state, response.status, monotonic() - started)
    return response
  }

  async #respond(state: State, server: Upgrader | null): Promise<Response> {
    const { route, request, path, id, ip } = state
    try {
      const { time_limit_ms } = route
      if (time_limit_ms) server?.timeout(request, Math.ceil(time_limit_ms / 1000) + SPARE_SECONDS)
      const answer = await this.#deadlines.run((signal) => this.#run(state, signal), time_limit_ms)
      if (answer instanceof Upgrade) return this.#switch(state, answer, server)
      const area = isResendClient(request) ? resendArea(path) : undefined
      const beside = { warnings: state.warnings.list, area }
      return respond(answer, route.status[0], id, headersOf(state), beside)
    } catch (thrown) {
      state.quota ??= this.#limits.see(ip) // without a caller, the headers tell the window of the address
      const error = asApiError(thrown, id, request.method)
      state.error_code = error.code
      const own = { warnings: state.warnings.list, page: route.page }
      const told = { method: request.method, path, ...own }
      return respondError(error, id, headersOf(state), told)
    }
  }

  /** Hands the connection over, to be closed when its credential ends. */
  #switch(state: State, { conversation }: Upgrade, server: Upgrader | null): Response {
    const { route, request, caller, id } = state
    const is_known = caller !== undefined && caller.kind !== "none"
    this.#sockets.open({
      request,
      server,
      protocol: route.socket ?? "",
      project_id: caller?.project_id ?? "",
      headers: { ...headersOf(state), "x-request-id": id },
      conversation,
      stillAdmitted: is_known ? () => this.#guard.stillAdmits(state) : undefined,
    })
    return new Response(null, { status: 101 }) // the runtime has answered the upgrade itself
  }

  #note({ route, request, path, id, ip, caller, error_code }: State, status: number, ms: number) {
    if (!route.path.startsWith("/v1/")) return
    this.#options.requests.add({
      request_id: id,
      project_id: caller?.project_id || null,
      is_anonymous: !caller || caller.kind === "none",
      key_id: caller?.key_id ?? null,
      method: request.method,
      path: shownPath(route, path),
      status,
      duration_ms: Math.round(ms),
      ip,
      error_code: error_code ?? null,
    })
  }

  /** The answer for what is not in the table, with the headers of every other answer. */
  absent(request: Request, server: Upgrader | null, error: ApiError): Response {
    const ip = this.#addressOf(request, server)
    const path = pathOf(request)
    const headers = path.startsWith("/v1") ? quotaHeaders(this.#limits.see(ip)) : {}
    const page = asksForPage(request) ? this.#options.absent_page : undefined
    return respondError(error, requestId(request), headers, { path, page })
  }

  /** Undefined where the browser asks for nothing that a page may do. */
  answerPreflight(
    routes: AnyRoute[],
    request: Request,
    server: Upgrader | null,
  ): Response | undefined {
    const headers = preflight(request, routes)
    if (!headers) return undefined
    const id = requestId(request)
    try {
      const quota = this.#limits.takePublic(this.#addressOf(request, server), request.method)
      const all = { ...headers, ...quotaHeaders(quota), "x-request-id": id }
      return new Response(null, { status: 200, headers: all })
    } catch (error) {
      return respondError(error, id, {}, { path: pathOf(request) })
    }
  }

  #addressOf(request: Request, server: Upgrader | null): string {
    const peer = server?.requestIP(request)?.address ?? "127.0.0.1"
    return clientAddress(peer, request.headers, this.#options.trusted_proxies())
  }

  /** The order of the contract, 00 section 6: of two checks that fail, the first one answers. */
  async #run(state: State, signal: AbortSignal): Promise<RouteAnswer> {
    const { route, request } = state
    const limit_bytes = route.limit ?? DEFAULT_LIMIT_BYTES
    refuseDeclared(request, limit_bytes)
    if (route.own_page) requireOwnPage(request, this.#options.base_url())
    if (isAnybodys(state)) await this.#guard.admitAnybody(state)
    else await this.#guard.admit(state)
    refuseOther(state)
    this.#options.health.refuse(route)
    if (route.socket) requireUpgrade(request, route.socket)

    if (route.method === "GET") return this.#perform(state, bodyOf({}), signal)
    const { workers } = this.#options
    const reservation = this.#bodies.enter(state.caller?.project_id || state.ip)
    try {
      const takes_form = route.page || (route.takes_form && isForm(request))
      const read = route.takes_bytes ? readBytes : takes_form ? readForm : readJson
      const reading = {
        limit_bytes,
        reservation,
        signal,
        workers,
        most_keys: route.most_keys,
        lists_are_files: route.takes_files && isResendClient(request),
      }
      return await this.#perform(state, await read(request, reading), signal)
    } finally {
      reservation.leave() // what was parsed is in memory until the answer
    }
  }

  async #perform(state: State, body: RequestBody, signal: AbortSignal): Promise<RouteAnswer> {
    const { route, request, id: request_id, params, path, ip } = state
    const caller = state.caller as Caller
    const { project_id } = caller
    this.#options.meter.count(caller)
    const claim = route.idempotent
      ? idempotency.claimOf({ request, path, caller, route, body }, this.#options.secrets)
      : undefined
    const call = { request, params, request_id, ip, caller, project_id, signal, claim }
    const run = () => handle(route, call, body.value, state.warnings)
    if (!claim) return run()

    this.#running.begin(claim)
    try {
      return await this.#once(claim, run)
    } finally {
      this.#running.end(claim)
    }
  }

  /**
   * Almost every request is a first one, so it is asked for an earlier answer only when it fails:
   * a handler takes the claim in the transaction of its work, and there a second one fails. It is
   * told the first answer even where it would be refused now.
   */
  async #once(claim: idempotency.Claim, run: () => Eventually): Promise<RouteAnswer> {
    try {
      return await run()
    } catch (error) {
      const kept = await idempotency.lookup(this.#options.store.read, claim)
      // The answer as it was, under the id of the request that asks for it again.
      if (kept) return { ...kept, headers: { "idempotent-replayed": "true" } }
      const is_old = error instanceof idempotency.AlreadyAnswered && claim.renewed
      if (is_old) return await run()
      throw error
    }
  }
}

type Eventually = Promise<RouteAnswer> | RouteAnswer

/** 404 for a word in the path that is none of its choices. Callers that may not ask were refused before. */
function refuseOther({ route, path, params }: State): void {
  for (const [name, words] of Object.entries(route.choices ?? {})) {
    if (words.includes(params[name] ?? "")) continue
    fail("not_found", `There is no ${shownPath(route, path)}.`)
  }
}

/** The caller's own id where it is one, else a new one. */
const requestId = ({ headers }: Request) => {
  const own = headers.get("x-request-id")
  return own && OWN_REQUEST_ID.test(own) ? own : newRequestId()
}

function headersOf({ caller, quota, route, request, allowed_origins }: State): HeaderFields {
  const headers: HeaderFields = quota && route.path.startsWith("/v1") ? quotaHeaders(quota) : {}
  if (isForBrowsers(route)) Object.assign(headers, corsHeaders(request, allowed_origins, route))
  if (!caller || caller.kind === "none") return headers
  headers["x-account-sending-status"] = caller.sending_status
  if (caller.sending_status_reason) {
    headers["x-account-sending-status-reason"] = asHeader(caller.sending_status_reason)
  }
  return headers
}

/** An operator may give a reason in any letters, and a header takes visible ASCII alone (RFC 9110, 5.5). */
const asHeader = (text: string) => text.replace(/[^\x20-\x7e]/gu, "?")

/** A request whose body and query are not read yet. */
type Unread = Omit<Call<unknown, unknown, Record<string, string>>, "body" | "query">

/** Reads body and query by the row, tells everything that is wrong with them, then runs it. */
function handle(route: AnyRoute, call: Unread, raw: unknown, warnings: Problems): Eventually {
  const problems = new Problems()
  const strict = call.request.headers.get("x-strict") === "1"
  const noteUnknown = strict ? refusing(problems) : warningOfNearMisses(warnings)
  const body = readBody(route, raw, noteUnknown, problems)
  const query = readSearch(route, call.request, noteUnknown, problems)
  problems.throwIfAny()
  return route.handle({ ...call, body, query } as Call<never, never, never>)
}
