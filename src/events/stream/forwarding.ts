import { newId } from "../../core/ids"
import { millis } from "../../core/time"
import { signedHeaders } from "../../lib/signature"
import { type Event, envelopeOf } from "../feed"
import { follow } from "../follow"
import type { Following, Wire } from "./streaming"

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

  async begin(wire: Wire): Promise<void> {
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

  async #deliver(wire: Wire, event: Event): Promise<void> {
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
