import { newId } from "../core/ids"
import { millis, sleep } from "../core/time"
import { signedHeaders } from "../lib/signature"
import type { Reader } from "../store/store"
import { type Event, envelopeOf, type FeedPosition } from "./feed"
import { follow } from "./feed-tail"
import type { MessageWatchers } from "./message-watchers"

interface StreamConnection {
  readonly closed: AbortSignal
  /** Resolves when there is room for the next frame. */
  send(frame: object): Promise<void>
  /** As `send`, for frames that are text already. */
  sendAll(frames: readonly string[]): Promise<void>
  /** For what cannot be asked for again. */
  pushAll(frames: readonly string[]): void
}

export interface Following {
  db: Reader
  project_id: string
  from: FeedPosition | undefined
  types: readonly string[]
}

const followed = (wire: StreamConnection, { db, project_id, from, types }: Following) =>
  follow(db, project_id, from, types, wire.closed)

/** Tells every event from a place on, and the changes of messages as long as it is there. */
export async function stream(
  wire: StreamConnection,
  following: Following,
  watching: MessageWatchers,
): Promise<void> {
  const off = watching.watch(following.project_id, (frames) => wire.pushAll(frames))
  try {
    for await (const events of followed(wire, following)) {
      await wire.sendAll(events.map(({ frame }) => frame))
    }
  } finally {
    off()
  }
}

/**
 * Tells the newest event, at once and then at most once in `every_ms`: for a client that wants to know
 * that something happened, and asks for the rest. So a project at work costs as little as one at rest.
 */
export async function streamNewest(
  wire: StreamConnection,
  following: Following,
  every_ms: number,
): Promise<void> {
  let newest: string | undefined
  let is_sending = false
  const sendNewest = async () => {
    is_sending = true
    for (; newest !== undefined; await sleep(every_ms, wire.closed)) {
      const frame = newest
      newest = undefined
      await wire.sendAll([frame])
    }
    is_sending = false
  }
  for await (const events of followed(wire, following)) {
    newest = events.at(-1)?.frame
    if (!is_sending) void sendNewest()
  }
}

const MOST_UNANSWERED = 16

/** The receiver has 30 s, as at every endpoint; the rest is the way there and back. */
const ANSWER_MILLISECONDS = 35_000

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

/**
 * An endpoint that lives as long as its connection: deliveries signed like all others, which the
 * client at the other end carries to a receiver of its own. What was answered paces them; nothing
 * is stored, and nothing tried again.
 */
export class Forwarding {
  readonly #following: Following
  readonly #secret: string
  readonly #unanswered = new Map<string, Timer>()
  #room = Promise.withResolvers<void>()

  constructor(following: Following, secret: string) {
    this.#following = following
    this.#secret = secret
  }

  async begin(wire: StreamConnection): Promise<void> {
    const { from } = this.#following
    wire.closed.addEventListener("abort", () => this.#forget(), { once: true })
    await wire.send({ type: "ready", secret: this.#secret, after: from?.id ?? null })
    for await (const events of followed(wire, this.#following)) {
      for (const { event } of events) {
        if (isForOneAlone(event)) continue
        await this.#deliver(wire, event)
        await this.#untilAnswered()
      }
    }
  }

  /** `{type: "result", delivery_id, response_status, response_body}`: asked for, late, or nonsense. */
  hear(frame: Record<string, unknown>): "expected" | "extra" | "bad" {
    const { type, delivery_id, response_status, response_body } = frame
    const is_status = response_status === null || Number.isInteger(response_status)
    const is_body = response_body === null || typeof response_body === "string"
    if (type !== "result" || typeof delivery_id !== "string" || !is_status || !is_body) return "bad"
    return this.#settle(delivery_id) ? "expected" : "extra"
  }

  async #deliver(wire: StreamConnection, event: Event): Promise<void> {
    if (wire.closed.aborted) return
    const { id } = event
    const delivery_id = newId()
    const body = JSON.stringify(envelopeOf(event))
    const timestamp = Math.floor(millis() / 1000)
    const secrets = [this.#secret] as const
    const signed = signedHeaders({ id, timestamp, body, secrets, format: "standard" })
    const timer = setTimeout(() => this.#settle(delivery_id), ANSWER_MILLISECONDS)
    this.#unanswered.set(delivery_id, timer)
    await wire.send({ type: "delivery", delivery_id, headers: { ...CONTENT, ...signed }, body })
  }

  async #untilAnswered() {
    while (this.#unanswered.size >= MOST_UNANSWERED) {
      this.#room = Promise.withResolvers()
      await this.#room.promise
    }
  }

  #settle(delivery_id: string): boolean {
    clearTimeout(this.#unanswered.get(delivery_id))
    this.#room.resolve()
    return this.#unanswered.delete(delivery_id)
  }

  #forget() {
    for (const delivery_id of [...this.#unanswered.keys()]) this.#settle(delivery_id)
  }
}

/** A test call of an endpoint: no other one hears of it, and this is another one. */
const isForOneAlone = ({ type, subject_id, data }: Event) =>
  subject_id !== null && (type === "webhook.test" || data.simulated === true)
