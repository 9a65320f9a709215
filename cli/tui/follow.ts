import type { Client } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import { follow, serverTime, startAt } from "../lib/feed"
import { NoUpgrade } from "../lib/live-socket"
import { EventStream, type Frame } from "../lib/stream"
import { millis, pause } from "../lib/time"
import { NO_FILTER } from "./filter"
import { type ActivityFrame, type RowUpdate, updateOfActivity, updateOfEvent } from "./message-rows"
import { newestMessages } from "./older-messages"
import { readable } from "./reading"
import type { MonitorStore } from "./store"

const TYPES = "email.*,sms.*,inbox.*"

/** So long it is asked again and again before the socket is tried once more. */
const POLLING_MILLISECONDS = 30_000
const REPEAT_MILLISECONDS = 2000

/** What follows, and the event behind which it goes on. */
interface Follower {
  client: Client
  store: MonitorStore
  after: string | undefined
  stop: AbortSignal
}

/**
 * The event to begin behind: the first of the newest email, or "" for the very first of all where
 * there is no email yet. Asked for before the list is read, it leaves no gap between the two.
 * Undefined, for only what is new, where it cannot be had.
 */
export async function firstCursor(
  client: Client,
  newest: { id: string } | undefined,
): Promise<string | undefined> {
  if (!newest) return ""
  const params = { email_id: newest.id }
  const events = client.call("GET /v1/emails/{email_id}/events", { params })
  return (await readable(events, () => true))?.data.events[0]?.id
}

/**
 * Brings what happens to the store until `stop`: over the socket; where none gets through, by asking
 * the event feed; where a key may not read events, by reading the newest messages. After an interruption
 * it goes on behind the last event that was heard, so nothing is missed.
 */
export async function followNews(
  client: Client,
  store: MonitorStore,
  begin: string | undefined,
  stop: AbortSignal,
): Promise<void> {
  const follower = { client, store, after: begin, stop }
  while (!stop.aborted) {
    try {
      await overSocket(follower)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      await otherwise(follower, error)
    }
  }
}

/** Comes back by itself when the connection breaks. Throws what no further try would mend. */
async function overSocket(follower: Follower): Promise<void> {
  const { client, store, after, stop } = follower
  const stream = new EventStream(client, {
    ...(after === undefined ? {} : { start: { after, not_before: undefined } }),
    types: TYPES,
    onState: (state) =>
      store.dispatch({ is: "known", of: { link: state === "open" ? "live" : "lost" } }),
    onFrame(frame) {
      if (frame.type === "event") follower.after = frame.event.id
      const fact = factOf(frame)
      if (fact) store.facts([fact])
    },
  })
  stop.addEventListener("abort", () => stream.close(), { once: true })
  await stream.ended
}

function factOf(frame: Frame): RowUpdate | undefined {
  if (frame.type === "event") return updateOfEvent(frame.event)
  return frame.type === "message" ? updateOfActivity(frame.message as ActivityFrame) : undefined
}

async function otherwise(follower: Follower, reason: Failure): Promise<void> {
  const until = millis() + POLLING_MILLISECONDS
  try {
    if (reason instanceof NoUpgrade) return await poll(follower, until)
    if (reason.exit === exits.unauthorized) return await readNewest(follower, until)
    if (reason.exit === exits.invalid) follower.after = undefined // too old: begin with what is new
  } catch (error) {
    if (!(error instanceof Failure)) throw error
  }
  follower.store.dispatch({ is: "known", of: { link: "lost" } })
  await pause(REPEAT_MILLISECONDS)
}

async function poll(follower: Follower, until: number): Promise<void> {
  const { client, store, after, stop } = follower
  const start =
    after === undefined
      ? await startAt(client, await serverTime(client))
      : { after: after || undefined, not_before: undefined }
  store.dispatch({ is: "known", of: { link: "polling" } })
  for await (const event of follow(client, start, TYPES, until)) {
    if (stop.aborted) return
    follower.after = event.id
    const fact = updateOfEvent(event)
    if (fact) store.facts([fact])
  }
}

async function readNewest({ client, store, stop }: Follower, until: number): Promise<void> {
  while (!stop.aborted && millis() < until) {
    const facts = await newestMessages(client, NO_FILTER)
    store.dispatch({ is: "known", of: { link: "polling" } })
    store.facts(facts)
    await pause(REPEAT_MILLISECONDS)
  }
}
