import type { Components } from "../../src/client/components"
import type { Client } from "./client"
import { exits, Failure } from "./errors"
import { given } from "./input"
import { millis } from "./time"

type EventEnvelope = Components["EventEnvelope"]

const PAGE = 100
const WAIT_SECONDS = 20
const WAIT_SLACK = 10_000
const READABLE_MILLISECONDS = 29 * 86_400_000

/** Where reading begins: behind an event, and not with what happened before a moment. */
export interface Start {
  after: string | undefined
  not_before: string | undefined
}

/** The server's own time, so that a wrong clock here loses nothing. */
export async function serverTime(client: Client): Promise<string> {
  return (await client.call("GET /v1/health")).data.time
}

/**
 * The feed knows events, not moments. The last email accepted before the moment leads to an event
 * close before it; what still lies between is left out by its time. Without one it is read from
 * its beginning.
 */
export async function startAt(client: Client, moment: string): Promise<Start> {
  const start: Start = { after: undefined, not_before: moment }
  try {
    const query = { created_before: moment, per_page: 1 }
    const [email] = (await client.call("GET /v1/emails", { query })).data
    if (!email || millis() - Date.parse(email.created_at) > READABLE_MILLISECONDS) return start
    const { data } = await client.call("GET /v1/emails/{email_id}/events", {
      params: { email_id: email.id },
    })
    return { ...start, after: data.events[0]?.id }
  } catch (error) {
    // A key that may read events but no email reads the feed from its beginning.
    if (error instanceof Failure && error.exit === exits.unauthorized) return start
    throw error
  }
}

/** Up to `limit` events from there on, oldest first. */
export async function readFeed(
  client: Client,
  { after, not_before }: Start,
  types: string | undefined,
  limit: number,
): Promise<EventEnvelope[]> {
  const rows: EventEnvelope[] = []
  let cursor = after
  while (rows.length < limit) {
    const query = { after: cursor, types, limit: not_before ? PAGE : Math.min(PAGE, limit) }
    const { data, meta } = await client.call("GET /v1/events", { query: given(query) })
    rows.push(...data.filter((event) => isWanted(event, not_before)))
    cursor = meta.next_after ?? data.at(-1)?.id
    if (!meta.has_more) break
  }
  return rows.slice(0, limit)
}

/** Up to `limit` of the latest events since a moment, newest first. */
export async function readLatest(
  client: Client,
  not_before: string | undefined,
  types: string | undefined,
  limit: number,
): Promise<EventEnvelope[]> {
  const rows: EventEnvelope[] = []
  let before = ""
  while (rows.length < limit) {
    const query = { before, types, limit: Math.min(PAGE, limit - rows.length) }
    const { data, meta } = await client.call("GET /v1/events", { query: given(query) })
    const wanted = data.filter((event) => isWanted(event, not_before))
    rows.push(...wanted.reverse())
    before = meta.next_before ?? ""
    if (!meta.has_more || wanted.length < data.length) break
  }
  return rows
}

/** Every event from there on, and then the new ones as they come, until the deadline. */
export async function* follow(
  client: Client,
  { after, not_before }: Start,
  types: string | undefined,
  deadline = Number.POSITIVE_INFINITY,
): AsyncGenerator<EventEnvelope> {
  let cursor = after
  while (millis() < deadline) {
    const wait = Math.min(WAIT_SECONDS, Math.ceil((deadline - millis()) / 1000))
    const query = { after: cursor, types, wait, limit: PAGE }
    const limit = wait * 1000 + WAIT_SLACK
    const { data, meta } = await client
      .within(limit)
      .call("GET /v1/events", { query: given(query) })
    yield* data.filter((event) => isWanted(event, not_before))
    cursor = meta.next_after ?? data.at(-1)?.id ?? cursor
  }
}

const isWanted = ({ created_at }: EventEnvelope, not_before: string | undefined) =>
  not_before === undefined || created_at >= not_before
