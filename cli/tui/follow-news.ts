import type { Client } from "../client"
import { exits, Failure } from "../failure"
import { type Start, serverTime, startAt } from "../feed"
import type { Email, Envelope } from "../records"
import { millis, pause } from "../time"
import { factOfEmail, factOfEvent } from "./message-rows"
import { followSocket } from "./socket-news"
import type { Store } from "./store"

const PAGE = 100
const WAIT_SECONDS = 5
const WAIT_SLACK = 10_000

/** So long it is asked again and again before the socket is tried once more. */
const POLLING_MILLISECONDS = 30_000
const FIRST_PAUSE = 500
const LONGEST_PAUSE = 5000
const REPEAT_MILLISECONDS = 2000

/**
 * Brings what happens to the store until `stop`: over the socket; where there is none, by asking
 * the event feed; where a key may not read that, by reading the newest emails. After an interruption
 * it goes on behind the last event that was heard, so nothing is missed.
 */
export async function followNews(client: Client, store: Store, stop: AbortSignal): Promise<void> {
  let after: string | undefined
  let wait = FIRST_PAUSE
  while (!stop.aborted) {
    const opened = () => {
      wait = FIRST_PAUSE
      store.hear({ is: "link", link: "live" })
    }
    const heard = { facts: (facts: Parameters<Store["facts"]>[0]) => store.facts(facts), opened }
    const { stood, ...told } = await attempted(client, after, heard, stop)
    after = told.after
    if (stop.aborted) return
    if (stood) store.hear({ is: "link", link: "lost" })
    else after = await poll(client, store, after, stop)
    await pause(wait * (0.75 + Math.random() / 2))
    wait = Math.min(LONGEST_PAUSE, wait * 2)
  }
}

/** A socket that cannot even be tried (signed out, say) is one that never stood. */
async function attempted(...[client, after, heard, stop]: Parameters<typeof followSocket>) {
  try {
    return await followSocket(client, after, heard, stop)
  } catch (error) {
    if (error instanceof Failure) return { after, stood: false }
    throw error
  }
}

/** Answers the id of the last event that was heard. */
async function poll(client: Client, store: Store, after: string | undefined, stop: AbortSignal) {
  const until = millis() + POLLING_MILLISECONDS
  let start: Start = { after, not_before: undefined }
  try {
    if (after === undefined) start = await startAt(client, await serverTime(client))
    while (!stop.aborted && millis() < until) {
      const query = { after: start.after, types: "email.*", wait: WAIT_SECONDS, limit: PAGE }
      const limit = WAIT_SECONDS * 1000 + WAIT_SLACK
      const { data, meta } = await client.get<Envelope[]>("/v1/events", query, limit)
      store.hear({ is: "link", link: "polling" })
      store.facts(data.flatMap((event) => factOfEvent(event) ?? []))
      start = { ...start, after: meta.next_after ?? data.at(-1)?.id ?? start.after }
    }
    return start.after
  } catch (error) {
    return await without(error, client, store, start.after, until, stop)
  }
}

/** What went wrong with the feed decides whether emails can still be read. */
async function without(
  error: unknown,
  client: Client,
  store: Store,
  after: string | undefined,
  until: number,
  stop: AbortSignal,
): Promise<string | undefined> {
  if (!(error instanceof Failure)) throw error
  if (error.exit === exits.invalid) return undefined // the cursor is too old: begin with what is new
  if (error.exit === exits.unauthorized) await readNewest(client, store, until, stop)
  else store.hear({ is: "link", link: "lost" })
  return after
}

async function readNewest(client: Client, store: Store, until: number, stop: AbortSignal) {
  try {
    while (!stop.aborted && millis() < until) {
      const { data } = await client.get<Email[]>("/v1/emails", { per_page: PAGE })
      store.hear({ is: "link", link: "polling" })
      store.facts(data.map(factOfEmail))
      await pause(REPEAT_MILLISECONDS)
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    store.hear({ is: "link", link: "lost" })
  }
}
