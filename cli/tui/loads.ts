import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import { optionWords } from "../lib/flags"
import { given } from "../lib/input"
import { HELD_QUEUE } from "../lib/message-status"
import { moment } from "../lib/time"
import type { ServerRun } from "../local/held"
import type { MessageFilter } from "./filter"
import { updateOfEmail } from "./message-rows"
import type { BoxFacts, Intent, MessageParts, ScreenName, SubscriberFacts, Tab } from "./state"
import type { News } from "./update"

const PAGE = 100

/** Each load is asked again every few seconds: the newest publishes of one topic are enough. */
const PUBLISHES = 25

/** Requests for one page of a filter that finds few messages. */
const MOST_LOOKS = 10

export type Load = Extract<Intent, { do: `load_${string}` }>

/** Where reading goes on, by the text of a filter; null at the end. */
export type OlderCursors = Map<string, string | null>

/** Reads what an intent asks for. */
export async function newsOf(client: Client, cursors: OlderCursors, intent: Load): Promise<News> {
  const query = { per_page: PAGE }
  switch (intent.do) {
    case "load_older":
      return await olderNews(client, cursors, intent.filter)
    case "load_newest": {
      const { since: _, ...fields } = intent.filter.query
      const { data } = await client.call("GET /v1/emails", {
        query: given({ ...fields, ...query }),
      })
      return { is: "facts", facts: data.map(updateOfEmail) }
    }
    case "load_message": {
      const { id, tab } = intent
      return { is: "detail", screen: "messages", id, tab, found: await partsOf(client, id, tab) }
    }
    case "load_endpoints":
      return { is: "endpoints", rows: (await client.call("GET /v1/webhooks", { query })).data }
    case "load_deliveries": {
      const { webhook_id } = intent
      const name = "GET /v1/webhooks/{webhook_id}/deliveries"
      const { data } = await client.call(name, { params: { webhook_id }, query })
      return { is: "deliveries", webhook_id, rows: data }
    }
    case "load_delivery": {
      const { id, webhook_id } = intent
      const name = "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}"
      const { data } = await client.call(name, { params: { webhook_id, delivery_id: id } })
      return { is: "detail", screen: "webhooks", id, found: data }
    }
    case "load_queue":
      return { is: "page", screen: "queue", found: (await client.call("GET /v1/queue")).data }
    case "load_reputation": {
      const { data } = await client.call("GET /v1/accounts/me/reputation")
      return { is: "page", screen: "reputation", found: data }
    }
    case "load_box":
      return { is: "page", screen: "box", found: await boxFacts(client) }
    case "load_inbound":
      return { is: "inbound", rows: (await client.call("GET /v1/inbound-emails", { query })).data }
    case "load_inbound_mail": {
      const { id } = intent
      const params = { inbound_id: id }
      const { data } = await client.call("GET /v1/inbound-emails/{inbound_id}", { params })
      return { is: "detail", screen: "inbound", id, found: data }
    }
    case "load_topics": {
      const { search = "" } = intent
      const asked = { ...query, ...(search !== "" && { search }) }
      const { data, meta } = await client.call("GET /v1/topics", { query: asked })
      return { is: "topics", search, rows: data, more: meta.has_more }
    }
    case "load_publishes": {
      const { topic_key } = intent
      const name = "GET /v1/topics/{topic_key}/publishes"
      const asked = { params: { topic_key }, query: { per_page: PUBLISHES } }
      return { is: "publishes", topic_key, rows: (await client.call(name, asked)).data }
    }
    case "load_subscriber": {
      const found = await subscriberFacts(client, intent.name)
      return { is: "detail", screen: "audience", id: intent.name, found }
    }
  }
}

const SCREENS: Partial<Record<Intent["do"], ScreenName>> = {
  load_endpoints: "webhooks",
  load_queue: "queue",
  load_inbound: "inbound",
  load_reputation: "reputation",
  load_topics: "audience",
  load_box: "box",
}

/** What is said where the answer would have stood. */
export function problemOf(intent: Intent, { exit, message, details }: Failure): News {
  const screen = SCREENS[intent.do]
  const scope = exit === exits.unauthorized && details.required_scope
  const problem = scope
    ? `this needs a key with the scope ${scope}`
    : exit === exits.not_found && screen
      ? "this server does not have this screen"
      : message
  if (screen) return { is: "problem", screen, problem }
  const none = { is: "detail", found: null, problem } as const
  switch (intent.do) {
    case "load_message":
      return { ...none, screen: "messages", id: intent.id, tab: intent.tab }
    case "load_delivery":
      return { ...none, screen: "webhooks", id: intent.id }
    case "load_inbound_mail":
      return { ...none, screen: "inbound", id: intent.id }
    case "load_subscriber":
      return { ...none, screen: "audience", id: intent.name }
  }
  if (scope === "webhooks:write") return { is: "read_only", why: problem }
  return { is: "notice", text: problem }
}

/** Pages are walked by cursor, one walk for each filter; at its end nothing more is asked for. */
async function olderNews(
  client: Client,
  cursors: OlderCursors,
  filter: MessageFilter,
): Promise<News> {
  const cursor = cursors.get(filter.text)
  const { since, ...fields } = filter.query
  const created_after = since === undefined ? undefined : moment(since, "since")
  const query = given({ ...fields, created_after, per_page: PAGE, cursor: cursor ?? undefined })
  let found = cursor === null ? undefined : await client.call("GET /v1/emails", { query })
  for (let looks = 1; looks < MOST_LOOKS && found?.meta.incomplete; looks++) {
    if (found.data.length > 0) break
    const further = { ...query, cursor: found.meta.next_cursor ?? undefined }
    found = await client.call("GET /v1/emails", { query: given(further) })
  }
  const next = found?.meta.next_cursor ?? null
  cursors.set(filter.text, next)
  const facts = found?.data.map(updateOfEmail) ?? []
  return { is: "older", facts, more: next !== null, filter: filter.text }
}

async function partsOf(client: Client, id: string, tab: Tab): Promise<MessageParts> {
  const input = { params: { email_id: id } }
  switch (tab) {
    case "Timeline": {
      const [found, attempts] = await Promise.all([
        client.call("GET /v1/emails/{email_id}", input),
        client.call("GET /v1/emails/{email_id}/attempts", input),
      ])
      const reports = await reportsOn(client, found.data)
      return { email: found.data, attempts: attempts.data, reports }
    }
    case "Events":
      return { events: (await client.call("GET /v1/emails/{email_id}/events", input)).data }
    case "Tracking":
      return { tracking: (await client.call("GET /v1/emails/{email_id}/tracking", input)).data }
    case "Text":
      return { content: (await client.call("GET /v1/emails/{email_id}/content", input)).data }
    default: {
      const bytes = await client.call("GET /v1/emails/{email_id}/raw", input)
      return { raw: new TextDecoder().decode(bytes) }
    }
  }
}

const REPORTED = /^email\.(soft_)?bounced$/

/** Servers report on a message, at the latest when it has bounced. A key may not read received mail. */
async function reportsOn(client: Client, { id, thread_id, timeline }: Components["Email"]) {
  if (!timeline.some(({ type }) => REPORTED.test(type))) return []
  const query = { thread_id: thread_id ?? id, kind: "bounce", per_page: PAGE } as const
  try {
    const { data } = await client.call("GET /v1/inbound-emails", { query })
    return data.filter(({ replied_to_message_id }) => replied_to_message_id === id).reverse()
  } catch (error) {
    if (error instanceof Failure) return []
    throw error
  }
}

/** The newest consents, topics and messages of a subscriber. */
const NEWEST = 20

async function subscriberFacts(client: Client, subscriber_id: string): Promise<SubscriberFacts> {
  const query = { per_page: NEWEST }
  const one = "GET /v1/subscribers/{subscriber_id}"
  const { data: subscriber } = await client.call(one, { params: { subscriber_id } })
  const own = { params: { subscriber_id: subscriber.id } }
  const [reachability, topics, consents, messages] = await Promise.all([
    readable(client.call(`${one}/reachability`, own)),
    readable(client.call(`${one}/topics`, { ...own, query })),
    readable(client.call(`${one}/consents`, { ...own, query })),
    readable(client.call("GET /v1/emails", { query: { ...query, subscriber_id: subscriber.id } })),
  ])
  return { subscriber, reachability, topics, consents, messages }
}

/** Undefined for what the key may not read. */
async function readable<Data>(answer: Promise<{ data: Data }>): Promise<Data | undefined> {
  try {
    return (await answer).data
  } catch (error) {
    if (error instanceof Failure && error.exit === exits.unauthorized) return undefined
    throw error
  }
}

/** What operators may read; without their rights, the report of `/readyz`. */
async function boxFacts(client: Client): Promise<BoxFacts> {
  const query = { per_page: PAGE }
  const all = await readable(
    Promise.all([
      client.call("GET /v1/admin/doctor"),
      client.call("GET /v1/admin/backups", { query }),
      client.call("GET /v1/admin/queues", { query }),
    ]).then((data) => ({ data })),
  )
  if (!all) return { checks: await readiness(client), backups: undefined, held: undefined }
  const [doctor, backups, queues] = all
  const held = queues.data.find(({ queue }) => queue === HELD_QUEUE) ?? null
  const { checks, data_dir, run_id } = doctor.data
  return { checks, backups: backups.data, held, server: { data_dir, run_id } }
}

async function readiness(client: Client): Promise<BoxFacts["checks"]> {
  const { body } = await client.plain("/readyz")
  const { checks = {}, warnings = [] } = body as {
    checks?: Record<string, string>
    warnings?: string[]
  }
  const looked = Object.entries(checks).map(([name, detail]) => {
    const outcome = /^(ok|off)\b/.test(detail) ? ("pass" as const) : ("fail" as const)
    return { name, outcome, detail, fix: null }
  })
  const warned = { name: "warning", outcome: "warn" as const, fix: null }
  return [...looked, ...warnings.map((detail) => ({ ...warned, detail }))]
}

/** The command that drops the held work on the machine of the server. It asks by itself. */
export const dropCommand = ({ data_dir }: ServerRun): string =>
  `belfry queue purge ${HELD_QUEUE}${optionWords({ "data-dir": data_dir })}`
