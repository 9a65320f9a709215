import { newId } from "../core/ids"
import { millis, sleep } from "../core/time"
import { signedHeaders } from "../lib/signature"
import type { Reader } from "../store/store"
import { type Event, envelopeOf, type FeedPosition, readWaiting } from "./feed"
import type { MessageWatchers } from "./message-watchers"
import { matchesType } from "./registry"

const AT_ONCE = 100
const WAIT_MILLISECONDS = 25_000

/** Between two reads of one follower, for each follower of the same project. */
const GAP_MILLISECONDS = 2
const LEAST_GAP = 10
const LONGEST_GAP = 200

/** How many follow a project here. */
const followers = new Map<string, number>()

/**
 * Every event behind a place (without one: from the oldest that is readable), in the order of the
 * feed and without a gap, as they come, until the signal. Of other types only the place is kept:
 * to ask for the wanted ones alone would mean to pass by all others again each time.
 */
export async function* follow(
  db: Reader,
  project_id: string,
  from: FeedPosition | undefined,
  types: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Event> {
  const isWanted = ({ type }: Event) => types.length === 0 || matchesType(types, type)
  let place = from
  count(project_id, 1)
  try {
    while (!signal.aborted) {
      const query = { from: place, limit: AT_ONCE, types: [] }
      const rows = await readWaiting(db, project_id, query, WAIT_MILLISECONDS, signal)
      for (const row of rows) {
        if (signal.aborted) return
        if (isWanted(row)) yield row
        place = row
      }
      // Many followers that read after each commit would do nothing else.
      if (rows.length < AT_ONCE) await sleep(gapOf(project_id), signal)
    }
  } finally {
    count(project_id, -1)
  }
}

function count(project_id: string, change: number) {
  const left = (followers.get(project_id) ?? 0) + change
  if (left > 0) followers.set(project_id, left)
  else followers.delete(project_id)
}

function gapOf(project_id: string): number {
  const wanted = (followers.get(project_id) ?? 1) * GAP_MILLISECONDS
  return Math.min(LONGEST_GAP, Math.max(LEAST_GAP, wanted))
}

/** A connection, as far as a stream of events needs it. */
interface StreamConnection {
  readonly closed: AbortSignal
  /** Resolves when there is room for the next frame. */
  send(frame: object): Promise<void>
  /** For what cannot be asked for again. */
  push(frame: object): void
}

/** What one connection follows. */
interface Following {
  db: Reader
  project_id: string
  from: FeedPosition | undefined
  types: readonly string[]
}

/** Tells every event from a place on, and the changes of messages as long as it is there. */
export async function stream(
  wire: StreamConnection,
  { db, project_id, from, types }: Following,
  watching: MessageWatchers,
): Promise<void> {
  const off = watching.watch(project_id, (message) => wire.push({ type: "message", message }))
  try {
    for await (const event of follow(db, project_id, from, types, wire.closed)) {
      await wire.send({ type: "event", event: envelopeOf(event) })
    }
  } finally {
    off()
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
    const { db, project_id, from, types } = this.#following
    wire.closed.addEventListener("abort", () => this.#forget(), { once: true })
    await wire.send({ type: "ready", secret: this.#secret, after: from?.id ?? null })
    for await (const event of follow(db, project_id, from, types, wire.closed)) {
      if (isForOneAlone(event)) continue
      await this.#deliver(wire, event)
      while (this.#unanswered.size >= MOST_UNANSWERED) {
        this.#room = Promise.withResolvers()
        await this.#room.promise
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
