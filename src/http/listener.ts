import type { Elysia } from "elysia"
import { listening } from "../core/destination"
import { ApiError } from "../core/errors"
import { newRequestId } from "../core/ids"
import { descriptorLimit } from "../core/libc"
import { monotonic, sleep } from "../core/time"
import { isWhole } from "./body"
import {
  type Busy,
  type ConnectionLimits,
  limitConnections,
  OpenConnections,
  type PeerLookup,
  peerOf,
} from "./connection-limits"
import { respondError } from "./envelope"
import { MOST_BUFFERED_BYTES, MOST_FRAME_BYTES, type Socket } from "./sockets"
import { hasTwoHosts, routable } from "./target"

/** No limit here: the answer of this one has no body, and the limits of the routes come first. */
const MAX_BODY_BYTES = Number.MAX_SAFE_INTEGER
const DRAIN_MILLISECONDS = 20_000

export interface Listener {
  port: number
  url: string
  /** Closes WebSockets (1012), gives running requests 20 s, then closes every connection. */
  stop(): Promise<void>
}

interface ListenOptions {
  host: string
  port: number
  idle_seconds: number
  /** Without it there are none: for tests of other things. */
  limits?: ConnectionLimits
  /** They may open as many connections as all others together. */
  trustedProxies?: () => string[]
}

/** Binds the socket. Throws where the port is taken (`EADDRINUSE`). */
export function listen(app: Elysia, options: ListenOptions): Listener {
  const { host, port, idle_seconds } = options
  const sockets = new Set<Socket>()
  const running = new RequestsInFlight()
  const server = Bun.serve({
    ...(host !== "" && { hostname: host }),
    port,
    idleTimeout: idle_seconds,
    maxRequestBodySize: MAX_BODY_BYTES,
    development: false, // the page of the development mode shows our sources
    reusePort: false, // without that mode Bun shares the port: two servers would each get half
    error: (error) => respondError(error, newRequestId(), {}),
    // A long poll is silent for up to 25 s without being idle; requests have their own limit.
    fetch: (request) => {
      server.timeout(request, REQUEST_SECONDS)
      if (hasTwoHosts(request)) return respondError(twoHosts(), newRequestId(), {})
      const answer = app.fetch(routable(request))
      return answer instanceof Promise ? running.hold(request, answer) : answer
    },
    websocket: socketEvents(sockets),
  })
  app.server = server as unknown as NonNullable<Elysia["server"]>
  const shown = host === "" || host === "0.0.0.0" || host === "::" ? "localhost" : host
  const bound = server.port ?? port
  const forget = listening(host === "" ? "0.0.0.0" : host, bound)
  const unlimit = limit(bound, options, () => {
    const { working, reading } = running.peers(server)
    for (const { peer } of sockets) if (peer !== undefined) working.add(peer)
    return { working, reading }
  })
  return {
    port: bound,
    url: `http://${shown.includes(":") ? `[${shown}]` : shown}:${bound}`,
    async stop() {
      unlimit()
      for (const socket of sockets) socket.close("restart")
      await Promise.race([server.stop(), sleep(DRAIN_MILLISECONDS)])
      await server.stop(true)
      forget()
    },
  }
}

const REQUEST_SECONDS = 35

/** A proxy before us may have gone by the other one: what it let pass is not what we would answer. */
const twoHosts = () =>
  new ApiError(
    "validation_error",
    "The request has more than one Host header. Send exactly one.",
    { fields: [{ path: "Host", code: "invalid", message: ONE_HOST }] },
    { status: 400 },
  )

const ONE_HOST = "The request must have exactly one Host header."

/** Where the system does not show its connections, there is no limit. Returns how to end it. */
function limit(port: number, { limits, trustedProxies }: ListenOptions, busy: () => Busy) {
  const open = limits && OpenConnections.of(port, descriptorLimit())
  if (!limits || !open) return () => {}
  return limitConnections({ open, limits, busy, trustedProxies: trustedProxies ?? (() => []) })
}

/** What Bun tells of a connection goes to its `Socket`, which was given at the upgrade. */
const socketEvents = (sockets: Set<Socket>): Bun.WebSocketHandler<Socket> => ({
  // Our own pings find silent clients long before. Not 0: within four seconds Bun would then cut off
  // a client that has not yet read what was buffered before our close frame.
  idleTimeout: 120,
  sendPings: false,
  // A frame somewhat too long still gets our close code; a huge one is not even buffered (1009).
  maxPayloadLength: 4 * MOST_FRAME_BYTES,
  backpressureLimit: 2 * MOST_BUFFERED_BYTES,
  open(wire) {
    sockets.add(wire.data)
    wire.data.opened(wire)
  },
  message: (wire, data) => wire.data.received(data),
  drain: (wire) => wire.data.drained(),
  pong: (wire) => wire.data.lives(),
  close(wire) {
    sockets.delete(wire.data)
    wire.data.gone()
  },
})

/** A client that sends one request after another sends the next one within this time. */
const RECENT_MS = 20

/** When the last request came. Work that can wait asks before it takes the event loop. */
export class RecentTraffic {
  #last = Number.NEGATIVE_INFINITY

  note(): void {
    this.#last = monotonic()
  }

  /** Whether a request came within the last 20 ms. */
  isRecent(): boolean {
    return monotonic() - this.#last < RECENT_MS
  }
}

class RequestsInFlight {
  readonly #requests = new Set<Request>()

  /** Holds the request until its answer is there. Returns the same promise: another one costs time. */
  hold(request: Request, answer: Promise<Response>): Promise<Response> {
    const forget = () => void this.#requests.delete(request)
    this.#requests.add(request)
    answer.then(forget, forget)
    return answer
  }

  /** Address and port as bytes, of each that works and of each that waits for its body. */
  peers(server: PeerLookup): {
    working: Set<string>
    reading: Set<string>
  } {
    const working = new Set<string>()
    const reading = new Set<string>()
    for (const request of this.#requests) {
      const peer = peerOf(request, server)
      if (peer !== undefined) (isWhole(request) ? working : reading).add(peer)
    }
    return { working, reading }
  }
}
