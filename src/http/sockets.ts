import { fail } from "../core/errors"
import { log } from "../core/log"
import { peerOf } from "./in-progress"
import { type Conversation, Socket } from "./socket"

/** How often a connection is looked at, and what it may take. Tests take shorter times. */
export interface SocketTimes {
  /** Between two looks: credential, silence, stuck reader. */
  look_ms: number
  ping_ms: number
  silence_ms: number
  stuck_ms: number
  /** For the goodbye to be read; 2 s without it. */
  parting_ms?: number
}

export const SOCKET_TIMES: SocketTimes = {
  look_ms: 2500,
  ping_ms: 25_000,
  silence_ms: 50_000,
  stuck_ms: 10_000,
}

/** Open connections of one project on this node; one more closes the oldest (4429). */
export const SOCKETS_PER_PROJECT = 100

/** The server, as far as an upgrade needs it. */
export interface Upgrader {
  requestIP(request: Request): { address: string; port: number } | null
  upgrade(request: Request, options: { data: Socket; headers: Record<string, string> }): boolean
}

export interface Opening {
  request: Request
  server: Upgrader | null
  protocol: string
  project_id: string
  headers: Record<string, string>
  conversation: Conversation
  /** Whether the credential would still be let in. */
  stillAdmitted: () => Promise<boolean>
}

interface Open {
  socket: Socket
  stillAdmitted: () => Promise<boolean>
  /** Since the last ping. */
  unpinged_ms: number
}

/** Every open WebSocket of this node, and who of them has to go. */
export class Sockets {
  readonly #times: SocketTimes
  readonly #projects = new Map<string, Set<Open>>()
  #timer: Timer | undefined

  constructor(times: SocketTimes = SOCKET_TIMES) {
    this.#times = times
  }

  /** Throws 422 where the request asks for no connection of this protocol. */
  open({ request, server, protocol, project_id, headers, conversation, ...rest }: Opening): void {
    const open = { ...rest, unpinged_ms: 0 } as Open
    const onGone = () => this.#forget(project_id, open)
    open.socket = new Socket(conversation, onGone, this.#times.parting_ms)
    open.socket.peer = server ? peerOf(request, server) : undefined
    const answer = { ...headers, "sec-websocket-protocol": protocol }
    this.#join(project_id, open)
    if (server?.upgrade(request, { data: open.socket, headers: answer })) return
    this.#forget(project_id, open)
    refuseUpgrade("upgrade_required", PLAIN)
  }

  #join(project_id: string, open: Open) {
    const all = this.#projects.get(project_id) ?? new Set()
    this.#projects.set(project_id, all.add(open))
    const [oldest] = all
    if (all.size > SOCKETS_PER_PROJECT) oldest?.socket.close("too_many")
    this.#timer ??= setInterval(() => this.#look(), this.#times.look_ms)
  }

  #forget(project_id: string, open: Open) {
    const all = this.#projects.get(project_id)
    all?.delete(open)
    if (all?.size === 0) this.#projects.delete(project_id)
    if (this.#projects.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look() {
    for (const all of this.#projects.values()) for (const open of [...all]) this.#lookAt(open)
  }

  #lookAt(open: Open) {
    const { socket, stillAdmitted } = open
    const { look_ms, ping_ms, silence_ms, stuck_ms } = this.#times
    if (socket.silent_ms >= silence_ms) return socket.close("silent")
    if (socket.stuck_ms >= stuck_ms) return socket.close("slow")
    open.unpinged_ms += look_ms
    if (open.unpinged_ms >= ping_ms) {
      open.unpinged_ms = 0
      socket.ping()
    }
    stillAdmitted().then(
      (admitted) => void (admitted || socket.close("unauthorized")),
      (error) => log.debug("the credential of a WebSocket could not be checked", { error }),
    )
  }
}

/** Before anything else of the route is looked at: a mere GET is told what this is. */
export function demandUpgrade({ headers }: Request, protocol: string): void {
  if (headers.get("upgrade")?.toLowerCase() !== "websocket")
    refuseUpgrade("upgrade_required", PLAIN)
  const offered = headers.get("sec-websocket-protocol")?.split(",") ?? []
  if (offered.some((one) => one.trim() === protocol)) return
  refuseUpgrade(
    "subprotocol_required",
    `This WebSocket needs the subprotocol ${protocol}. Name it in Sec-WebSocket-Protocol.`,
  )
}

const PLAIN = "This route is a WebSocket. Connect with a WebSocket client."

const refuseUpgrade = (reason: string, message: string): never =>
  fail("validation_error", message, { reason })
