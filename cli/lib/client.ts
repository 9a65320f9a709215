import {
  type AnswerOf,
  type AnyInput,
  type OperationInput,
  type OperationName,
  requestOf,
  stepProblem,
} from "../../src/client/client"
import type { OperationRow } from "../../src/client/operation"
import { operations } from "../../src/client/operations"
import { environment, version } from "./environment"
import { exitOfStatus, exits, Failure, usage } from "./errors"
import { certificateFault } from "./post"
import { type Connection, isLoopback } from "./profiles"
import { millis, pause } from "./time"

interface Call {
  method: string
  path: string
  query?: Readonly<Record<string, unknown>>
  body?: unknown
  headers?: Readonly<Record<string, string>>
  /** An access token instead of the key. */
  token?: string | undefined
}

export interface Client {
  readonly url: string
  /** Sends one request of the API, with the types of its operation. */
  call<Name extends OperationName>(
    name: Name,
    ...input: OperationInput<Name>
  ): Promise<AnswerOf<Name>>
  /** The same for an operation that is only known while the program runs. */
  send(name: OperationName, input?: AnyInput): Promise<unknown>
  /** The bytes of an answer that may be long, as they come. The time limit holds for its beginning. */
  stream(name: OperationName, input?: AnyInput): Promise<AsyncIterable<Uint8Array>>
  /** The same client with another time limit for each call (ms). */
  within(timeout: number): Client
  /** A route without the envelope; any status is an answer. */
  plain(path: string): Promise<{ status: number; body: unknown }>
  /** A WebSocket that is about to open, with the same credential in its headers. */
  socket(
    path: string,
    query: Record<string, string | undefined>,
    protocol: string,
    headers?: Record<string, string>,
  ): Promise<WebSocket>
}

interface ClientOptions {
  /** Milliseconds for one call, its retries included. */
  timeout: number
  dry_run: boolean
  /** Called with a line for people: what was asked, what came, how long it took. */
  trace?: ((line: string) => void) | undefined
  /** Called with the headers of every answer. */
  onHeaders?: ((headers: Headers) => void) | undefined
  /** The access token of the sign-in. It is read before each call, because it soon expires. */
  access?: (() => Promise<string>) | undefined
  /** For calls that need no credential, and are to carry none. */
  anonymous?: boolean
}

/** Thrown instead of sending when `--dry-run` is given: the request that would have gone out. */
export class DryRun extends Error {
  readonly request: Record<string, unknown>

  constructor(request: Record<string, unknown>) {
    super("dry run")
    this.request = request
  }
}

interface Answer {
  status: number
  headers: Headers
  bytes: Uint8Array
}

/**
 * The client of the API. Throws Failure for everything that is not a 2xx. Repeats nothing but a GET
 * that was answered 503 with Retry-After, as long as the time limit allows.
 */
export function openClient(connection: Connection, options: ClientOptions): Client {
  const send = async (name: OperationName, input: AnyInput = {}): Promise<unknown> => {
    requireQuery(name, input.query ?? {})
    requireParams(input.params ?? {})
    const { accept, ...call } = requestOf(name, input)
    const answer = await patiently(connection, options, call)
    if (answer.status < 200 || answer.status > 299) throw refusal(answer, connection, options)
    if (accept !== "application/json") return answer.bytes
    const body = parsed(answer, connection.url) as { meta?: object }
    return { ...body, meta: body.meta ?? {} }
  }
  return {
    url: connection.url,
    send,
    call: async <Name extends OperationName>(name: Name, ...[input]: OperationInput<Name>) =>
      (await send(name, input as AnyInput | undefined)) as AnswerOf<Name>,
    async stream(name, input = {}) {
      requireParams(input.params ?? {})
      const { accept: _, ...call } = requestOf(name, input)
      const token = await tokenFor(connection, options, call)
      const headers = { accept: "text/event-stream, */*;q=0.5", ...call.headers }
      return streamed(connection, options, { ...call, token, headers })
    },
    within: (timeout) => openClient(connection, { ...options, timeout }),
    async plain(path) {
      const answer = await once(connection, options, { method: "GET", path }, options.timeout)
      return { status: answer.status, body: parsed(answer, connection.url) }
    },
    async socket(path, query, protocol, more = {}) {
      const token = connection.signed_in ? await options.access?.() : undefined
      const call: Call = { method: "GET", path, query, token, headers: more }
      const headers = { ...headersOf(connection, call), ...proofOf(connection, options, call) }
      const url = addressOf(connection, call).replace(/^http/, "ws")
      const proxy = proxyFor(url)
      return new WebSocket(url, { protocols: [protocol], headers, ...(proxy && { proxy }) })
    },
  }
}

/** The fields of what a change answers: a typing error in `--json=fields` is refused before it. */
export function fieldsOf(name: OperationName): string[] {
  const { fields = "" }: OperationRow = operations[name]
  return fields.split(" ")
}

/**
 * Throws exit 2 for a value that no path can hold, before a question is asked or a request is sent. An empty
 * one comes from a script whose variable is not set.
 */
export function requireParams(params: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(params)) {
    if (value === "") throw usage(`${name} is empty: give an id or a name`)
    const problem = stepProblem(value)
    if (problem !== undefined) throw usage(`${name}: ${problem}`)
  }
}

const PAGING = ["per_page", "cursor"]

/** What the operation does not take never gets into an address, which logs keep. */
function requireQuery(name: OperationName, query: object): void {
  const { query: known = {}, paged }: OperationRow = operations[name]
  const allowed = [...Object.keys(known), ...(paged ? PAGING : [])]
  const wrong = Object.keys(query).find((field) => !allowed.includes(field))
  if (wrong !== undefined) throw new Error(`${wrong}: no query field`)
}

/** The token of a sign-in, where there is one. Throws where nothing is to be sent, and without any credential. */
async function tokenFor(connection: Connection, options: ClientOptions, call: Call) {
  if (options.dry_run && call.method !== "GET") throw new DryRun(described(connection, call))
  const { api_key, signed_in } = connection
  if (api_key === null && !signed_in && !options.anonymous) throw noKey(connection)
  return signed_in && !options.anonymous ? await options.access?.() : undefined
}

async function patiently(connection: Connection, options: ClientOptions, call: Call) {
  const token = await tokenFor(connection, options, call)
  const deadline = millis() + options.timeout

  while (true) {
    const answer = await once(connection, options, { ...call, token }, deadline - millis())
    const wait = Number(answer.headers.get("retry-after") ?? Number.NaN) * 1000
    const again = call.method === "GET" && answer.status === 503 && Number.isFinite(wait)
    if (!again || millis() + wait >= deadline) return answer
    options.trace?.(`503, next attempt in ${wait / 1000} s`)
    await pause(wait)
  }
}

async function once(
  connection: Connection,
  options: ClientOptions,
  call: Call,
  timeout: number,
): Promise<Answer> {
  const url = addressOf(connection, call)
  const started = millis()
  try {
    const response = await sent(
      connection,
      options,
      call,
      AbortSignal.timeout(Math.max(1, timeout)),
    )
    const bytes = new Uint8Array(await response.arrayBuffer())
    const id = response.headers.get("x-request-id") ?? "-"
    options.trace?.(`${call.method} ${url} ${response.status} ${millis() - started} ms ${id}`)
    return { status: response.status, headers: response.headers, bytes }
  } catch (error) {
    throw await silence(error, connection, timeout)
  }
}

async function sent(
  connection: Connection,
  options: ClientOptions,
  call: Call,
  signal: AbortSignal,
): Promise<Response> {
  const url = addressOf(connection, call)
  const response = await fetch(url, {
    method: call.method,
    headers: { ...headersOf(connection, call), ...proofOf(connection, options, call) },
    redirect: "manual", // the key goes where it was meant to go, and nowhere else
    signal,
    ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
    ...(isLoopback(url) ? { proxy: false as const } : {}),
  })
  options.onHeaders?.(response.headers)
  return response
}

async function streamed(connection: Connection, options: ClientOptions, call: Call) {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new DOMException("", "TimeoutError")), options.timeout)
  try {
    const response = await sent(connection, options, call, late.signal)
    const { status, headers, body } = response
    if (response.ok && body) return body as AsyncIterable<Uint8Array>
    const bytes = new Uint8Array(await response.arrayBuffer())
    throw refusal({ status, headers, bytes }, connection, options)
  } catch (error) {
    throw error instanceof Failure ? error : await silence(error, connection, options.timeout)
  } finally {
    clearTimeout(timer)
  }
}

function addressOf({ url }: Connection, { path, query = {} }: Call): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value))
  }
  return `${url}${path}${search.size === 0 ? "" : `?${search}`}`
}

function headersOf(connection: Connection, { body, headers }: Call): Record<string, string> {
  const { signed_in, account_id, project_id } = connection
  return {
    accept: "application/json, */*;q=0.5",
    "user-agent": `belfry-cli/${version}`,
    ...(signed_in && account_id ? { "x-account-id": account_id } : {}),
    ...(signed_in && project_id ? { "x-project-id": project_id } : {}),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
  }
}

/** A sign-in is used before a key. */
function proofOf({ api_key }: Connection, { anonymous }: ClientOptions, { token }: Call) {
  if (anonymous) return {}
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  return api_key === null ? {} : { "x-api-key": api_key }
}

function described(connection: Connection, call: Call): Record<string, unknown> {
  const { api_key, signed_in } = connection
  const proof = signed_in
    ? { authorization: "Bearer …" }
    : api_key && { "x-api-key": `${api_key.slice(0, 17)}…` }
  const headers = { ...headersOf(connection, call), ...proof }
  const url = addressOf(connection, call)
  return { dry_run: true, method: call.method, url, headers, body: masked(call.body ?? null) }
}

const SECRET_FIELD = /password|secret|token|access_key|code$/

/** A dry run may stand in a terminal's history or a job's log, so secrets are masked. */
function masked(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(masked)
  if (typeof body !== "object" || body === null) return body
  const fields = Object.entries(body)
  return Object.fromEntries(
    fields.map(([name, value]) => [name, SECRET_FIELD.test(name) ? "…" : masked(value)]),
  )
}

function noKey({ url }: Connection): Failure {
  const ways = "give a key with --api-key or BELFRY_API_KEY, or sign in with `belfry login`"
  const hint = isLoopback(url) ? `start a server with \`belfry up\`, or ${ways}` : ways
  return new Failure(exits.unauthorized, "unauthorized", `There is no API key for ${url}.`, {
    hint,
  })
}

function parsed({ bytes, status }: Answer, url: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    const message = `${url} answered ${status} with something that is not JSON. Is it a Belfry server?`
    const exit = status < 300 ? exits.failed : exitOfStatus(status)
    throw new Failure(exit, "bad_answer", message, { status })
  }
}

function refusal(answer: Answer, connection: Connection, { anonymous }: ClientOptions): Failure {
  const { status, headers } = answer
  const { url, key_from } = connection
  const elsewhere = status < 400 ? headers.get("location") : null
  if (elsewhere && URL.canParse(elsewhere, url)) {
    const { origin } = new URL(elsewhere, url)
    const hint = `give its address, ${origin}`
    return new Failure(exits.failed, "bad_answer", `${url} refers to ${elsewhere}.`, { hint })
  }
  const body = parsed(answer, url) as {
    error?: Partial<Failure>
    meta?: { request_id?: string }
  } | null
  const { code, message, details } = body?.error ?? {}
  const request_id = body?.meta?.request_id ?? headers.get("x-request-id") ?? undefined
  return new Failure(
    exitOfStatus(status),
    code ?? "bad_answer",
    message ?? `${url} answered ${status}.`,
    {
      ...{ details: details ?? {}, status, ...(request_id ? { request_id } : {}) },
      asked: { server: url, key_from: anonymous ? null : key_from },
    },
  )
}

/** Why no answer came. */
async function silence(
  error: unknown,
  { url, url_from }: Connection,
  timeout: number,
): Promise<Failure> {
  const cause = error instanceof Error ? error : new Error(String(error))
  if (cause.name === "TimeoutError") {
    const time =
      timeout < 1000 ? `${Math.max(1, timeout)} ms` : `${Math.round(timeout / 100) / 10} s`
    const message = `${url} gave no answer within ${time}.`
    return new Failure(exits.try_later, "timeout", message, { hint: "wait longer with --timeout" })
  }
  const reason = "code" in cause ? String(cause.code) : cause.message
  if (reason.startsWith("Header ")) return usage(reason) // it was never sent
  const unreachable = (message: string, hint?: string) =>
    new Failure(exits.unreachable, "unreachable", message, {
      ...{ details: { url, named_by: url_from, reason }, ...(hint && { hint }) },
    })
  const { hostname } = new URL(url)
  if (reason === "ENOTFOUND") return unreachable(`There is no host ${hostname}.`, WHICH)
  const distrust = certificateFault(reason)
  if (distrust !== reason) {
    const hint = "name the file of its authority in NODE_EXTRA_CA_CERTS"
    return unreachable(`The certificate of ${url} is not trusted: ${distrust}.`, hint)
  }
  const other = reason === "ECONNREFUSED" ? undefined : await otherScheme(url)
  if (!other) return unreachable(`No server answers at ${url}.`)
  const [wrong, right] = [url, other].map((one) => one.split(":")[0])
  return unreachable(
    `The server at ${url} speaks ${right}, not ${wrong}.`,
    `its address is ${other}`,
  )
}

const WHICH = "name the server with --url or BELFRY_URL"
const PROBE_MILLISECONDS = 2000

/** The same address with https for http or http for https, where a server answers. It gets no key. */
async function otherScheme(url: string): Promise<string | undefined> {
  const other = url.replace(/^https?/, (scheme) => (scheme === "https" ? "http" : "https"))
  const tls = { rejectUnauthorized: false }
  const signal = AbortSignal.timeout(PROBE_MILLISECONDS)
  const direct = isLoopback(url) ? { proxy: false as const } : {}
  return await fetch(`${other}/healthz`, { signal, tls, redirect: "manual", ...direct }).then(
    () => other,
    () => undefined,
  )
}

/**
 * The proxy that the environment names for an address (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, in
 * either case), or undefined. `fetch` reads them by itself; a WebSocket has to be told. This
 * machine itself is never asked through a proxy.
 */
export function proxyFor(address: string, from = environment): string | undefined {
  const { protocol, hostname, port } = new URL(address)
  const is_secure = /^(https|wss):$/.test(protocol)
  const of = (name: string) => from[name.toLowerCase()] || from[name] || undefined
  if (isLoopback(address)) return undefined
  const given = of(is_secure ? "HTTPS_PROXY" : "HTTP_PROXY") ?? of("ALL_PROXY")
  const own_port = port || (is_secure ? "443" : "80")
  const excepted = (of("NO_PROXY") ?? "").split(/[\s,]+/).filter(Boolean)
  if (!given || excepted.some((entry) => isExcepted(entry, hostname, own_port))) return undefined
  return /^https?:\/\//.test(given) ? given : `http://${given}`
}

/** `*`, a name and all below it (with or without a leading dot), a name with its port. */
function isExcepted(entry: string, host: string, port: string): boolean {
  if (entry === "*") return true
  const [, name = "", wanted_port] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
  if (wanted_port !== undefined && wanted_port !== port) return false
  const bare = name.replace(/^\*?\./, "")
  return host === bare || host.endsWith(`.${bare}`)
}
