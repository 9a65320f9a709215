import type { Components } from "../../src/client/components"
import type { Client } from "./client"
import type { Context } from "./context"
import { exits, Failure } from "./errors"
import { type Start, serverTime, startAt } from "./feed"
import { given } from "./input"
import {
  frameIn,
  type LinkState,
  LiveSocket,
  mayPass,
  NoUpgrade,
  notUnderstood,
} from "./live-socket"

const PATH = "/v1/events/stream"
const PROTOCOL = "svc.events.v1"

export type Frame =
  | { type: "ready"; secret: string; after: string | null }
  | { type: "event"; event: Components["EventEnvelope"] }
  | { type: "message"; message: unknown }
  | { type: "delivery"; delivery_id: string; headers: Record<string, string>; body: string }
  | { type: "ping" }

interface StreamOptions {
  /** Where to begin; without it with what happens from now on. */
  start?: Start | undefined
  types?: string | undefined
  forward?: boolean
  /** Sent along each time it opens. */
  headers?: Record<string, string>
  /** One after the other; what it returns is awaited before the next. */
  onFrame: (frame: Frame) => unknown
  onState?: (state: LinkState) => void
  timeout?: number | undefined
  /** Of a consumer that moves its own place on: the last event it is done with. */
  cursor?: () => string | undefined
}

/**
 * Follows the project over one outgoing WebSocket. When it breaks, it is opened again behind the last event
 * that was seen: nothing is missed, and nothing comes twice.
 */
export class EventStream {
  /** Resolves after `close`. Rejects with what no further try would mend. */
  readonly ended: Promise<void>
  readonly #client: Client
  readonly #options: StreamOptions
  readonly #live: LiveSocket<Frame>
  #after: string | undefined
  #not_before: string | undefined
  #was_open = false

  constructor(client: Client, options: StreamOptions) {
    this.#client = client
    this.#options = options
    const { onFrame, onState, timeout, headers } = options
    this.#live = new LiveSocket<Frame>({
      ...{ onFrame, onState, timeout },
      begin: () => this.#begin(),
      connect: () => client.socket(PATH, this.#query(), PROTOCOL, headers),
      onOpen: () => {
        this.#was_open = true
      },
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

  /** Closes it, and `ended` rejects with this error. */
  fail(error: unknown): void {
    this.#live.fail(error)
  }

  /** Without a place of its own, the server tells one at the start of a forwarding stream only. */
  async #begin() {
    const { start, forward } = this.#options
    const now = async () => startAt(this.#client, await serverTime(this.#client))
    const known = start ?? (forward ? undefined : await now())
    this.#after = known?.not_before === undefined ? known?.after : (known.after ?? "")
    this.#not_before = known?.not_before
  }

  #query() {
    const { types, forward, cursor } = this.#options
    const after = cursor?.() ?? this.#after
    return { after, types, forward: forward ? "true" : undefined }
  }

  #heard(text: string): Frame | undefined {
    const frame = frameIn<Frame>(text)
    if (!frame || frame.type === "ping") return undefined
    if (frame.type === "ready") this.#after ??= frame.after ?? ""
    if (frame.type === "event") {
      this.#after = frame.event.id
      if (this.#not_before !== undefined && frame.event.created_at < this.#not_before)
        return undefined
    }
    return frame
  }

  /** Throws what another attempt would only repeat. */
  async #checkClose(code: number, opened: boolean) {
    if (code === 4429) {
      const message = "The project has too many open connections, and this one was the oldest."
      throw new Failure(exits.limited, "too_many_connections", message)
    }
    if (code === 4400) throw notUnderstood()
    if (opened && code !== 4401) return
    const query = { after: this.#query().after || undefined, types: this.#options.types, limit: 1 }
    try {
      await this.#client.call("GET /v1/events", { query: given(query) })
    } catch (error) {
      if (this.#was_open && mayPass(error)) return
      throw error
    }
    if (!this.#was_open) throw new NoUpgrade(this.#client.url)
  }
}

/** Notes on a terminal that the connection broke, and that it is back. */
export function notifyLink(
  { output, paint }: Context,
  missed = "No event was missed.",
): (state: LinkState) => void {
  let was_lost = false
  return (state) => {
    if (state === "lost") {
      was_lost = true
      void output.note(paint.yellow("The connection is lost. Connecting again …"))
    } else if (was_lost) {
      was_lost = false
      void output.note(paint.green(`Connected again. ${missed}`))
    }
  }
}
