import type { Client } from "../lib/client"
import { given } from "../lib/input"
import { moment } from "../lib/time"
import { emailQuery, inboxQuery, type MessageFilter, pushQuery, textQuery } from "./filter"
import {
  type RowUpdate,
  updateOfEmail,
  updateOfInbox,
  updateOfPush,
  updateOfText,
} from "./message-rows"
import { PAGE, readable } from "./reading"

interface MessagePage {
  facts: RowUpdate[]
  /** Null at the end of the list. */
  next: string | null
}

type Read = (client: Client, filter: MessageFilter, cursor?: string) => Promise<MessagePage>

const NOTHING: MessagePage = { facts: [], next: null }

/** Requests for one page of a filter that finds few messages. */
const MOST_LOOKS = 10

const readEmails: Read = async (client, { query: { since, ...filter } }, cursor) => {
  const fields = emailQuery(filter)
  if (!fields) return NOTHING
  const created_after = since === undefined ? undefined : moment(since, "since")
  const query = given({ ...fields, created_after, ...PAGE, cursor })
  let found = await client.call("GET /v1/emails", { query })
  for (let looks = 1; looks < MOST_LOOKS && found.meta.incomplete; looks++) {
    if (found.data.length > 0) break
    const further = { ...query, cursor: found.meta.next_cursor ?? undefined }
    found = await client.call("GET /v1/emails", { query: given(further) })
  }
  return { facts: found.data.map(updateOfEmail), next: found.meta.next_cursor ?? null }
}

/** A key that may not read texts sees none. */
const readTexts: Read = async (client, { query: { since, ...filter } }, cursor) => {
  const fields = textQuery(filter)
  if (!fields) return NOTHING
  const created_after = since === undefined ? undefined : moment(since, "since")
  const query = given({ ...fields, created_after, ...PAGE, cursor })
  const found = await readable(client.call("GET /v1/sms", { query }), () => true)
  if (!found) return NOTHING
  const tags = filter.tag === undefined ? {} : { tags: [filter.tag] } // the list does not show them
  const facts = found.data.map((text) => ({ ...updateOfText(text), ...tags }))
  return { facts, next: found.meta.next_cursor ?? null }
}

/** A key that may not read push messages sees none. */
const readPushes: Read = async (client, { query: { since, ...filter } }, cursor) => {
  const fields = pushQuery(filter)
  if (!fields) return NOTHING
  const created_after = since === undefined ? undefined : moment(since, "since")
  const query = given({ ...fields, created_after, ...PAGE, cursor })
  const found = await readable(client.call("GET /v1/push", { query }), () => true)
  if (!found) return NOTHING
  return { facts: found.data.map(updateOfPush), next: found.meta.next_cursor ?? null }
}

/** A key that may not read inboxes sees none. Their list knows no times: what is too old is left out here. */
const readInboxes: Read = async (client, { query: { since, ...filter } }, cursor) => {
  const fields = inboxQuery(filter)
  if (!fields) return NOTHING
  const query = given({ ...fields, ...PAGE, cursor })
  const found = await readable(client.call("GET /v1/inbox", { query }), () => true)
  if (!found) return NOTHING
  const begin = since === undefined ? "" : moment(since, "since")
  const facts = found.data.filter(({ created_at }) => created_at >= begin).map(updateOfInbox)
  const is_over = facts.length < found.data.length
  return { facts, next: is_over ? null : (found.meta.next_cursor ?? null) }
}

const LISTS = [readEmails, readTexts, readPushes, readInboxes]

/** The newest page of each list. */
export async function newestMessages(client: Client, filter: MessageFilter): Promise<RowUpdate[]> {
  const { since: _, ...query } = filter.query
  const pages = await Promise.all(LISTS.map((read) => read(client, { ...filter, query })))
  return pages.flatMap(({ facts }) => facts)
}

interface Walk {
  read: Read
  /** Where reading goes on: undefined at the beginning, null at the end. */
  cursor: string | null | undefined
  /** Read already, and older than what the other lists have told. */
  held: RowUpdate[]
}

/** How far the lists are read, by the text of a filter. */
export type Walks = Map<string, Walk[]>

/**
 * The next older messages of all lists. One list may reach back further than another. What it has beyond
 * that waits, so that no row is later put between rows that are shown.
 */
export async function olderMessages(client: Client, walks: Walks, filter: MessageFilter) {
  const begun = () => LISTS.map((read) => ({ read, cursor: undefined, held: [] }))
  const all: Walk[] = walks.get(filter.text) ?? begun()
  walks.set(filter.text, all)
  for (const walk of all) {
    if (walk.held.length > 0 || walk.cursor === null) continue
    const { facts, next } = await walk.read(client, filter, walk.cursor)
    Object.assign(walk, { held: facts, cursor: next })
  }
  const ends = all.flatMap(({ cursor, held }) => (cursor === null ? [] : (held.at(-1)?.id ?? [])))
  const floor = ends.sort().at(-1) ?? ""
  const facts = all.flatMap(({ held }) => held.filter(({ id }) => id >= floor))
  for (const walk of all) walk.held = walk.held.filter(({ id }) => id < floor)
  const more = all.some(({ cursor, held }) => cursor !== null || held.length > 0)
  return { facts, more }
}
