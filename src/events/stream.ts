import { newId } from "../core/ids"
import { millis, nextTurn, sleep, unlessAborted } from "../core/time"
import { signedHeaders } from "../lib/signature"
import { perStore } from "../store/cached"
import type { Reader } from "../store/store"
import { isTest, matchesType } from "./emit"
import {
  type Event,
  envelopeOf,
  type FeedPosition,
  isBefore,
  later,
  read,
  readWaiting,
} from "./feed"
import type { MessageWatchers } from "./message-watchers"

const AT_ONCE = 100
const WAIT_MILLISECONDS = 25_000

/** Between two reads at the end of a feed, for each connection that follows it. */
const GAP_MILLISECONDS = 2
const LEAST_GAP = 10
const LONGEST_GAP = 200

/** An event on its way to connections. Its frame is made once, however many of them get it. */
class StreamedEvent {
  readonly event: Event
  #frame: string | undefined

  constructor(event: Event) {
    this.event = event
  }

  get frame(): string {
    this.#frame ??= JSON.stringify({ type: "event", event: envelopeOf(this.event) })
    return this.#frame
  }
}

/**
 * Every event behind a place (without one: from the oldest that is readable), in the order of the
 * feed and without a gap, as they come, until the signal. What was there together comes together.
 * Of other types only the place is kept: to ask for the wanted ones alone would mean to pass by all
 * others again each time.
 */
async function* follow(
  db: Reader,
  project_id: string,
  from: FeedPosition | undefined,
  types: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<StreamedEvent[]> {
  const tails = tailsOf(db)
  const tail = tails.get(project_id) ?? new FeedTail(db, project_id)
  tails.set(project_id, tail)
  tail.followers += 1
  let place = from
  try {
    while (!signal.aborted) {
      const batch = await tail.behind(place, signal)
      const wanted = batch.of(types)
      if (wanted.length > 0) yield wanted
      place = batch.end
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    tail.followers -= 1
    if (tail.followers === 0) {
      tails.delete(project_id)
      tail.stop()
    }
  }
}

const tailsOf = perStore(() => new Map<string, FeedTail>())

/** The end of one project's feed. It is read once for all connections that are there. */
class FeedTail {
  readonly #db: Reader
  readonly #project_id: string
  readonly #stopped = new AbortController()
  /** What was read last at the end. Undefined until a follower has read as far. */
  #newest: FeedBatch | undefined
  #next: Promise<FeedBatch> | undefined
  #pause: Promise<void> | undefined
  followers = 0

  constructor(db: Reader, project_id: string) {
    this.#db = db
    this.#project_id = project_id
  }

  /** What comes next behind the place; nothing after 25 s without an event. An abort rejects. */
  async behind(place: FeedPosition | undefined, signal: AbortSignal): Promise<FeedBatch> {
    const newest = this.#newest
    if (!newest || isBefore(place, newest.from)) return await this.#catchUp(place)
    if (isBefore(place, newest.end)) return newest.behind(place)
    this.#next ??= this.#readNext(newest.end)
    return (await unlessAborted(this.#next, signal)).behind(place)
  }

  stop() {
    this.#stopped.abort()
  }

  /** Reads for one follower alone, which comes from further back. */
  async #catchUp(place: FeedPosition | undefined): Promise<FeedBatch> {
    const known = this.#newest?.end
    const { rows, end: looked_at } = await read(this.#db, this.#project_id, query(place))
    const last = looked_at ?? rows.at(-1) ?? place
    // Requests have their turn between two reads of a follower that has missed much.
    if (rows.length === AT_ONCE || looked_at)
      return await nextTurn().then(() => new FeedBatch(place, last, streamed(rows)))
    // Nothing is left behind the last row but what came while it was read.
    const end = later(last, known)
    this.#newest ??= new FeedBatch(end, end, [])
    return new FeedBatch(place, end, streamed(rows))
  }

  /** Reads for all followers at the end. If each of them read after a commit, nothing else would be done. */
  async #readNext(from: FeedPosition | undefined): Promise<FeedBatch> {
    const { signal } = this.#stopped
    try {
      await this.#pause
      const [db, project_id, wait_ms] = [this.#db, this.#project_id, WAIT_MILLISECONDS]
      const { rows, end } = await readWaiting(db, project_id, query(from), wait_ms, signal)
      this.#pause = rows.length < AT_ONCE ? sleep(this.#gap(), signal) : nextTurn()
      this.#newest = new FeedBatch(from, end ?? rows.at(-1) ?? from, streamed(rows))
      return this.#newest
    } finally {
      this.#next = undefined
    }
  }

  #gap(): number {
    return Math.min(LONGEST_GAP, Math.max(LEAST_GAP, this.followers * GAP_MILLISECONDS))
  }
}

const query = (from: FeedPosition | undefined) => ({ from, limit: AT_ONCE, types: [] })

const streamed = (rows: readonly Event[]) => rows.map((row) => new StreamedEvent(row))

class FeedBatch {
  readonly from: FeedPosition | undefined
  readonly end: FeedPosition | undefined
  readonly #events: readonly StreamedEvent[]
  readonly #chosen = new Map<string, StreamedEvent[]>()

  constructor(
    from: FeedPosition | undefined,
    end: FeedPosition | undefined,
    events: readonly StreamedEvent[],
  ) {
    this.from = from
    this.end = end
    this.#events = events
  }

  /** Those of some types (of all: an empty list), chosen once for all followers with this filter. */
  of(types: readonly string[]): StreamedEvent[] {
    const key = types.join()
    const known = this.#chosen.get(key)
    if (known) return known
    const isWanted = ({ event }: StreamedEvent) =>
      types.length === 0 || matchesType(types, event.type)
    const chosen = this.#events.filter(isWanted)
    this.#chosen.set(key, chosen)
    return chosen
  }

  behind(place: FeedPosition | undefined): FeedBatch {
    if (!isBefore(this.from, place)) return this
    const rest = this.#events.filter(({ event }) => isBefore(place, event))
    return new FeedBatch(place, later(place, this.end), rest)
  }
}

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
        if (isTest(event)) continue
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
