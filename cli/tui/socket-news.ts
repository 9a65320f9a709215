import type { Client } from "../client"
import type { Envelope } from "../records"
import { millis } from "../time"
import { type Activity, type Fact, factOfActivity, factOfEvent } from "./message-rows"

/** The server says something every 25 s; who hears nothing for so long hears nobody any more. */
const SILENCE_MILLISECONDS = 60_000
const LOOK_MILLISECONDS = 5000

export interface Heard {
  facts(facts: readonly Fact[]): void
  /** The connection stands. */
  opened(): void
}

type Frame =
  | { type: "event"; event: Envelope }
  | { type: "message"; message: Activity }
  | { type: "ping" }

/**
 * Follows `/v1/events/stream` from behind an event, until the connection ends or `stop` does.
 * Answers the id of the last event that was heard, and whether the connection ever stood.
 */
export async function followSocket(
  client: Client,
  after: string | undefined,
  heard: Heard,
  stop: AbortSignal,
): Promise<{ after: string | undefined; stood: boolean }> {
  const query = { after, types: "email.*" }
  const socket = await client.socket("/v1/events/stream", query, "svc.events.v1")
  const over = Promise.withResolvers<void>()
  let last = after
  let stood = false
  let heard_at = millis()
  const look = setInterval(() => {
    if (millis() - heard_at > SILENCE_MILLISECONDS) over.resolve()
  }, LOOK_MILLISECONDS)

  socket.addEventListener("open", () => {
    stood = true
    heard.opened()
  })
  socket.addEventListener("message", ({ data }) => {
    heard_at = millis()
    const frame = frameOf(data)
    if (frame?.type === "ping") socket.send(PONG)
    if (frame?.type === "event") last = frame.event.id
    const fact = frame && factOf(frame)
    if (fact) heard.facts([fact])
  })
  socket.addEventListener("close", () => over.resolve())
  socket.addEventListener("error", () => over.resolve())
  stop.addEventListener("abort", () => over.resolve(), { once: true })
  await over.promise
  clearInterval(look)
  socket.terminate()
  return { after: last, stood }
}

const PONG = JSON.stringify({ type: "pong" })

function factOf(frame: Frame): Fact | undefined {
  if (frame.type === "event") return factOfEvent(frame.event)
  return frame.type === "message" ? factOfActivity(frame.message) : undefined
}

/** A frame that cannot be read is as good as none. */
function frameOf(data: unknown): Frame | undefined {
  try {
    return typeof data === "string" ? (JSON.parse(data) as Frame) : undefined
  } catch {
    return undefined
  }
}
