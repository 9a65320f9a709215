import { connect, type Socket } from "node:net"
import { deadline } from "./deadline"
import {
  type AddressPolicy,
  addressFor,
  type Destination,
  destinationOf,
  NetError,
} from "./destination"
import { codeOf } from "./faults"
import { millis, millisFrom, monotonic } from "./time"

export type { AddressPolicy } from "./destination"
export { NetError, type NetErrorKind } from "./destination"

export interface NetRequest extends AddressPolicy {
  url: string
  method?: string | undefined
  /** `Host` and the framing headers are ours and are taken out. CR or LF throws TypeError. */
  headers?: Record<string, string> | undefined
  body?: string | Uint8Array<ArrayBuffer> | undefined
  /** For everything together: names, connection, answer and body. */
  timeout_ms: number
  /** For the TCP connection alone, which the total includes. Default 5 s. See `watchReach`. */
  connect_ms?: number | undefined
  /**
   * The receiver can tell a repetition. Then a connection that was kept open, and proves to be
   * closed, is replaced by a new one. With GET that is always so (RFC 9110 9.2.2).
   */
  repeatable?: boolean | undefined
  /**
   * The receiver may get it once at most, and the caller must know whether it left. All but a POST have a connection
   * of their own, because Bun repeats what a kept one lost. A host that gave no answer lately is first asked for a connection.
   */
  once?: boolean | undefined
  /** How much of the body is kept. The rest is not read. */
  capture_bytes: number
  /**
   * The status is all that counts: of the body is kept what comes in this time, and a body that
   * breaks off or never ends is no failure. Then the connection is closed.
   */
  body_ms?: number | undefined
  /** PEM of the authorities to trust instead of the well-known ones. */
  ca?: string | undefined
  /** HTTP/2, over https. Only requests with the same word share connections. */
  http2?: string | undefined
}

export interface NetAnswer {
  status: number
  headers: Headers
  body: Uint8Array<ArrayBuffer>
  /** The body was longer than `capture_bytes`, or did not come as a whole. */
  truncated: boolean
  duration_ms: number
}

const CONNECT_MS = 5000

/**
 * The one way out over HTTP: resolves the name, checks every address, connects to the address that
 * was checked. Any status is an answer; redirects are not followed, bodies not decompressed, proxies
 * of the environment not used. A connection may be one that an earlier request to the same address
 * (and, with TLS, the same name and authorities) left open. Throws NetError.
 */
export async function request(options: NetRequest): Promise<NetAnswer> {
  const started = monotonic()
  const place = destinationOf(options.url)
  const stop = new AbortController()
  let limit: string | undefined
  const end = (name: string) => {
    limit ??= name
    stop.abort()
  }
  const { timeout_ms } = options
  const drop = deadline(timeout_ms, () => end(`no answer in ${timeout_ms} ms`))
  let unwatch = () => {}
  let unsent = true
  try {
    const address = await addressFor(place, options, stop.signal)
    if (options.once) await reach(place, address, options.connect_ms ?? CONNECT_MS)
    unsent = false
    const connect_ms = options.connect_ms ?? CONNECT_MS
    unwatch = watchReach(address, place.port, connect_ms, () => {
      end(`no connection in ${connect_ms} ms`)
    })
    const response = await send(place, address, options, stop.signal)
    unwatch()
    const { body, truncated } = await capture(response, options)
    // The rest of the body is not needed.
    if (truncated) stop.abort()
    const { status, headers } = response
    return { status, headers, body, truncated, duration_ms: Math.round(monotonic() - started) }
  } catch (error) {
    stop.abort()
    throw Object.assign(explained(error, place.url, limit), { unsent })
  } finally {
    drop()
    unwatch()
  }
}

export interface NetStream {
  status: number
  headers: Headers
  /** As it comes. A reader that is slow makes the sender wait. Throws NetError when the connection fails. */
  body: AsyncGenerator<Uint8Array, void>
}

type StreamRequest = AddressPolicy & Pick<NetRequest, "url" | "method" | "headers" | "body">

/**
 * As `request`, but the answer is read piece by piece, for as long as `signal` allows: when it aborts, the
 * connection ends. Leaving the loop over the body ends it, too. Throws NetError; `timeout` after an abort.
 */
export async function openStream(options: StreamRequest, signal: AbortSignal): Promise<NetStream> {
  const place = destinationOf(options.url)
  const stop = new AbortController()
  const ending = AbortSignal.any([signal, stop.signal])
  const told = (error: unknown) =>
    explained(error, place.url, signal.aborted ? "the request was ended" : undefined)
  const whole: NetRequest = { ...options, timeout_ms: 0, capture_bytes: 0 }
  try {
    const address = await addressFor(place, options, ending)
    const response = await fetch(pinned(place, address), init(place, whole, ending))
    const body = pieces(response, told, () => stop.abort())
    return { status: response.status, headers: response.headers, body }
  } catch (error) {
    throw told(error)
  }
}

async function* pieces(response: Response, told: (error: unknown) => Error, end: () => void) {
  try {
    for await (const chunk of response.body ?? []) yield chunk
  } catch (error) {
    throw told(error)
  } finally {
    end()
  }
}

const MOST_RETRY_AFTER_SECONDS = 86_400

/** `Retry-After` (RFC 9110 10.2.3), seconds or a date, at most a day; null for anything else. */
export function retryAfterSeconds(headers: Headers): number | null {
  const text = headers.get("retry-after")?.trim() ?? ""
  const seconds = /^\d+$/.test(text) ? Number(text) : (millisFrom(text) - millis()) / 1000
  return Number.isNaN(seconds) ? null : Math.min(MOST_RETRY_AFTER_SECONDS, Math.max(0, seconds))
}

/**
 * Checks a URL as `request` does, without connecting. `signal` ends the wait for the name servers.
 * Throws NetError: `invalid_url`, `dns` (no address, or no answer) or `blocked_address`; `timeout`
 * when the signal came first.
 */
export async function assertPublic(
  text: string,
  options: AddressPolicy,
  signal: AbortSignal,
): Promise<void> {
  const place = destinationOf(text)
  try {
    await addressFor(place, options, signal)
  } catch (error) {
    throw explained(
      error,
      place.url,
      signal.aborted ? "the name servers did not answer" : undefined,
    )
  }
}

/** Places that have answered, and when: a connection to one of them may still be open. */
const answered = new Map<string, number>()
const MOST_REMEMBERED = 10_000

/** A kept connection that is closed shows it within a round trip. */
const STALE_MS = 1000

/**
 * A server may close an idle connection while the next request is on its way. The second try keeps
 * that from becoming a failure.
 */
async function send(place: Destination, address: string, options: NetRequest, signal: AbortSignal) {
  const target = pinned(place, address)
  const there = nameOf(place, address)
  const request = init(place, options, signal)
  const begun = monotonic()
  try {
    const response = await fetch(target, request)
    if (answered.size >= MOST_REMEMBERED) answered.clear()
    answered.set(there, monotonic())
    return response
  } catch (error) {
    const stale = answered.has(there) && codeOf(error) === "ECONNRESET"
    if (options.once) answered.delete(there)
    if (!options.repeatable || !stale || monotonic() - begun > STALE_MS) throw error
    return await fetch(target, { ...request, keepalive: false })
  }
}

const nameOf = ({ protocol, port }: Destination, address: string) => `${protocol}${address} ${port}`

const LATELY_MS = 10_000

/** Connects to a place that did not answer lately, and sends nothing. Rejects with NetError. */
async function reach(place: Destination, address: string, connect_ms: number): Promise<void> {
  const since = answered.get(nameOf(place, address))
  if (since !== undefined && monotonic() - since < LATELY_MS) return
  const { port, url } = place
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect({ host: address, port })
  const drop = deadline(connect_ms, () =>
    reject(new NetError("timeout", `${url.host}: no connection in ${connect_ms} ms`)),
  )
  socket.once("connect", resolve)
  socket.on("error", reject)
  try {
    await promise
  } finally {
    drop()
    socket.destroy()
  }
}

function pinned({ protocol, tail }: Destination, address: string): string {
  const host = address.includes(":") ? `[${address}]` : address
  return `${protocol}//${host}${tail}`
}

function init(place: Destination, options: NetRequest, signal: AbortSignal): BunFetchRequestInit {
  const { method = "GET", body, ca, http2 } = options
  const { protocol, authority, host, is_literal } = place
  // No key of ours needs a passphrase. Bun keeps connections apart whose TLS differs in anything.
  const authorities = { ...(ca !== undefined && { ca }), ...(http2 && { passphrase: http2 }) }
  // Without the server's name the certificate would be checked against the pinned address.
  const tls = is_literal ? authorities : { ...authorities, serverName: host }
  const plain: BunFetchRequestInit = {
    method,
    headers: headersFor(authority, options.headers ?? {}),
    redirect: "manual",
    decompress: false,
    // "" and null would still let the environment's proxy resolve the name for us.
    proxy: false,
    signal,
    body,
    ...(options.once && method !== "POST" && { keepalive: false }),
    ...(http2 && { protocol: "http2" }),
  }
  return protocol === "https:" ? { ...plain, tls } : plain
}

const OURS = new Set(["host", "connection", "content-length", "transfer-encoding"])

function headersFor(authority: string, given: Record<string, string>): Record<string, string> {
  const headers: Record<string, string> = {
    "user-agent": "Belfry",
    "accept-encoding": "identity",
  }
  // Names differ in their letters' case alone: the last one wins, as with any other object.
  for (const given_name in given) {
    const name = given_name.toLowerCase()
    if (!OURS.has(name)) headers[name] = given[given_name] ?? ""
  }
  headers.host = authority
  return headers
}

async function capture(response: Response, { capture_bytes, body_ms }: NetRequest) {
  const kept: Kept = { parts: [], seen: 0 }
  const reading = read(response, capture_bytes, kept)
  const whole = body_ms === undefined ? reading.then(() => true) : succeedsIn(body_ms, reading)
  const is_whole = await whole
  const body = new Uint8Array(Buffer.concat(kept.parts))
  return { body, truncated: !is_whole || kept.seen > capture_bytes }
}

interface Kept {
  parts: Uint8Array[]
  /** Bytes of the body that came. */
  seen: number
}

async function read(response: Response, cap: number, kept: Kept): Promise<void> {
  if (isShort(response.headers, cap)) {
    kept.parts = [new Uint8Array(await response.arrayBuffer())]
    return
  }
  // Left by `break`: aborting inside the loop would make the iterator throw.
  for await (const chunk of response.body ?? []) {
    kept.parts.push(chunk.subarray(0, Math.max(0, cap - kept.seen)))
    kept.seen += chunk.length
    if (kept.seen > cap) break
  }
}

/** Whether the work succeeds in that time. Nobody is told how it ends later. */
const succeedsIn = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const drop = deadline(ms, () => resolve(false))
    const end = (succeeded: boolean) => () => {
      drop()
      resolve(succeeded)
    }
    work.then(end(true), end(false))
  })

/** Then nothing longer can come, and it need not be counted piece by piece (RFC 9112 6.3). */
function isShort(headers: Headers, cap: number): boolean {
  const length = headers.get("content-length")
  if (length === null || headers.has("transfer-encoding")) return false
  return /^\d+$/.test(length) && Number(length) <= cap
}

const tls_codes = /^(ERR_TLS|ERR_SSL|CERT_|EPROTO|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_)/

function explained(error: unknown, url: URL, limit: string | undefined): Error {
  if (error instanceof NetError) return error
  const { host } = url
  if (limit !== undefined) return new NetError("timeout", `${host}: ${limit}`, error)
  const code = codeOf(error)
  // Without a code it is no trouble of the network but a mistake in what we were given.
  if (code === undefined && error instanceof TypeError) return error
  const reason = code ?? (error instanceof Error ? error.message : String(error))
  if (tls_codes.test(reason) || /CERT/.test(reason)) {
    return new NetError("tls", `TLS with ${host} failed: ${reason}`, error)
  }
  return new NetError("connection", `the connection to ${host} failed: ${reason}`, error)
}

/**
 * Calls `dead` when the host is silent for `connect_ms`, until the returned function is called.
 * `fetch` does not report its connection. So half the time only passes; then a connection of our
 * own asks the host, has the other half for that, and is closed. A refused connection is an answer,
 * too.
 */
function watchReach(
  address: string,
  port: number,
  connect_ms: number,
  dead: () => void,
): () => void {
  const half = connect_ms / 2
  let socket: Socket | undefined
  const finish = () => {
    drop()
    socket?.destroy()
  }
  let drop = deadline(half, () => {
    socket = connect({ host: address, port })
    socket.once("connect", finish)
    socket.on("error", finish) // for good: a socket without a listener throws
    drop = deadline(half, () => {
      finish()
      dead()
    })
  })
  return finish
}
