import type { Components } from "../../src/client/components"
import type { Client } from "./client"
import { exits, Failure } from "./errors"
import {
  frameIn,
  type LinkState,
  LiveSocket,
  mayPass,
  NoUpgrade,
  notUnderstood,
} from "./live-socket"

const PATH = "/v1/subscriber-inbox/ws"
const PROTOCOL = "svc.inbox.v1"

/** A new one is asked for before it ends. */
const TOKEN_SECONDS = 3600

/** Whose inbox it is. */
export type NamedInbox = { external_id: string } | { subscriber_id: string }

export interface TailedCounts {
  unread: number
  unseen: number
  total: number
}

interface ChangeOfMany {
  type: "messages.read" | "messages.seen" | "messages.archived"
  upto_seq: number
  category?: string
  before?: string
  read_only?: boolean
}

/** What the socket of an inbox tells of it. */
export type InboxFrame =
  | { type: "ready"; subscriber_id: string; last_seq: number; counts: TailedCounts }
  | {
      type: "message.created" | "message.updated"
      seq: number
      message: Omit<Components["InboxMessage"], "metadata">
    }
  | { type: "message.deleted"; seq: number; id: string }
  | ChangeOfMany
  | ({ type: "counts" } & TailedCounts)
  | { type: "resync" }
  | { type: "ack"; ref: string }
  | { type: "error"; ref?: string; code: string; message: string }

type OwnFrame = { type: "ping" | "pong" | "token.expiring" }

interface InboxStreamOptions {
  /** One after the other; what it returns is awaited before the next. */
  onFrame: (frame: InboxFrame) => unknown
  onState?: (state: LinkState) => void
  timeout?: number | undefined
}

/**
 * Follows the inbox of one subscriber over its socket, with tokens that the API gives. When the socket breaks, it is
 * opened again behind the last change that was heard: nothing is missed, and nothing comes twice.
 */
export class InboxStream {
  /** Resolves after `close`. Rejects with what no further try would mend. */
  readonly ended: Promise<void>
  readonly #client: Client
  readonly #wire: Client
  readonly #owner: NamedInbox
  readonly #live: LiveSocket<InboxFrame>
  #token = ""
  /** Of the last change that was heard. */
  #seq: number | undefined
  /** Of the last change when the server said `ready`. */
  #newest = 0
  #was_ready = false
  #is_ready = false
  #refusal: unknown

  /** The socket is opened by `wire`, without the credential with which `client` asks for tokens. */
  constructor(client: Client, wire: Client, owner: NamedInbox, options: InboxStreamOptions) {
    this.#client = client
    this.#wire = wire
    this.#owner = owner
    this.#live = new LiveSocket<InboxFrame>({
      ...options,
      connect: () => this.#connect(),
      onOpen: () => this.send({ type: "auth", token: this.#token, after_seq: this.#seq }),
      hear: (text) => this.#heard(text),
      checkClose: (code, opened) => this.#checkClose(code, opened),
    })
    this.ended = this.#live.ended
  }

  send(frame: object): void {
    this.#live.send(frame)
  }

  close(): void {
    this.#live.close()
  }

  async #newToken(): Promise<string> {
    const body = { ...this.#owner, ttl_seconds: TOKEN_SECONDS }
    return (await this.#client.call("POST /v1/subscriber-inbox/token", { body })).data.token
  }

  async #connect(): Promise<WebSocket> {
    this.#is_ready = false
    this.#refusal = undefined
    try {
      this.#token = await this.#newToken()
    } catch (error) {
      this.#refusal = error
      throw error
    }
    return await this.#wire.socket(PATH, {}, PROTOCOL)
  }

  /** Where no new token comes, the server ends the connection, and the next one asks again. */
  async #refresh(): Promise<void> {
    const token = await this.#newToken().catch(() => undefined)
    if (token !== undefined) this.send({ type: "refresh", token, ref: "refresh" })
  }

  #heard(text: string): InboxFrame | undefined {
    const frame = frameIn<InboxFrame | OwnFrame>(text)
    if (frame === undefined) return undefined
    switch (frame.type) {
      case "ping":
        this.send({ type: "pong" })
        return undefined
      case "token.expiring":
        void this.#refresh()
        return undefined
      case "pong":
        return undefined
      case "ready":
        this.#was_ready = true
        this.#is_ready = true
        this.#newest = frame.last_seq
        this.#seq ??= frame.last_seq
        return frame
      case "resync": // what was missed is not kept any more
        this.#seq = this.#newest
        return frame
      default:
        if ("seq" in frame) this.#seq = frame.seq
        if ("upto_seq" in frame) this.#seq = frame.upto_seq
        return frame
    }
  }

  /** Throws what another attempt would only repeat. */
  async #checkClose(code: number, opened: boolean): Promise<void> {
    if (this.#refusal !== undefined) {
      if (this.#was_ready && mayPass(this.#refusal)) return
      throw this.#refusal
    }
    if (code === 4400) throw notUnderstood()
    if (code === 4429) {
      const message = "The subscriber has too many open connections, and this one was the oldest."
      throw new Failure(exits.limited, "too_many_connections", message)
    }
    if (code === 4403 || (code === 4401 && !this.#is_ready)) {
      const message = "The server refuses to show this inbox. The subscriber may be blocked."
      throw new Failure(exits.unauthorized, "forbidden", message)
    }
    if (!opened && !this.#was_ready) throw new NoUpgrade(this.#client.url)
  }
}
