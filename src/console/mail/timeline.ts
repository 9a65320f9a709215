import type { Components } from "../../client/components"
import { call } from "../transport"

type EmailEvent = Components["EmailEvents"]["events"][number]
type WebhookDelivery = Components["Delivery"]

/** One event of the message, and the deliveries to webhooks that it caused. */
export interface TimelineEvent {
  event: EmailEvent
  deliveries: ShownDelivery[]
}

type ShownDelivery = WebhookDelivery & { url: string }

export interface Timeline {
  entries: TimelineEvent[]
  /** The number of later events, which are not in `entries`. */
  left_out: number
  /** Some deliveries to webhooks may be missing. */
  is_short_of_deliveries: boolean
}

const MOST_EVENTS = 100
const MOST_ENDPOINTS = 20
const DELIVERIES_A_PAGE = 100

/** Endpoints with more deliveries than a page are asked by event. These are the most endpoints, and the most events of each. */
const MOST_BUSY_ENDPOINTS = 5
const MOST_EVENTS_ASKED = 20

/** Deliveries to a busy endpoint that have ended, by endpoint and event: nobody asks for them again. */
export type EndedDeliveries = Map<string, ShownDelivery[]>

/** The first 100 events of a message, oldest first, each with its webhooks. `ended` is kept from look to look. */
export async function readTimeline(email_id: string, ended: EndedDeliveries): Promise<Timeline> {
  const { data } = await call("GET /v1/emails/{email_id}/events", { params: { email_id } })
  const all = data.events.toSorted((one, other) => one.timestamp.localeCompare(other.timestamp))
  const events = all.slice(0, MOST_EVENTS)
  const { deliveries, is_short } = await deliveriesOf(events, ended)
  const byEvent = Map.groupBy(deliveries, ({ event_id }) => event_id)
  return {
    entries: events.map((event) => ({ event, deliveries: byEvent.get(event.id) ?? [] })),
    left_out: all.length - events.length,
    is_short_of_deliveries: is_short,
  }
}

/** A key that may not read webhooks sees none. */
async function deliveriesOf(events: EmailEvent[], ended: EndedDeliveries) {
  const [first] = events
  const query = { per_page: MOST_ENDPOINTS }
  const found = await call("GET /v1/webhooks", { query }).catch(() => undefined)
  if (!first || !found) return { deliveries: [], is_short: false }
  const since = first.timestamp
  const pages = await Promise.all(
    found.data.map(async (endpoint) => ({ endpoint, ...(await pageOf(endpoint, { since })) })),
  )
  const busy = pages.filter(({ has_more }) => has_more).map(({ endpoint }) => endpoint)
  const asked = events.slice(0, MOST_EVENTS_ASKED)
  const rest = await Promise.all(
    busy.slice(0, MOST_BUSY_ENDPOINTS).map((endpoint) => deliveriesByEvent(endpoint, asked, ended)),
  )
  const all = new Map([...pages.flatMap(({ rows }) => rows), ...rest.flat()].map(withId))
  const is_cut = busy.length > 0 && events.length > MOST_EVENTS_ASKED
  return {
    deliveries: [...all.values()],
    is_short: is_cut || busy.length > MOST_BUSY_ENDPOINTS || found.meta.has_more,
  }
}

type Endpoint = Pick<Components["Webhook"], "id" | "url">

/** What came later fills the page of a busy endpoint, so each event is asked for by itself. */
async function deliveriesByEvent(endpoint: Endpoint, events: EmailEvent[], ended: EndedDeliveries) {
  const lists = await Promise.all(
    events.map(async ({ id: event_id }) => {
      const key = `${endpoint.id} ${event_id}`
      const known = ended.get(key)
      if (known) return known
      const { rows } = await pageOf(endpoint, { event_id })
      if (rows.every(({ status }) => ENDED.has(status))) ended.set(key, rows)
      return rows
    }),
  )
  return lists.flat()
}

const ENDED: ReadonlySet<WebhookDelivery["status"]> = new Set(["success", "exhausted"])

async function pageOf({ id, url }: Endpoint, which: { since: string } | { event_id: string }) {
  const query = { ...which, per_page: DELIVERIES_A_PAGE }
  const params = { webhook_id: id }
  const { data, meta } = await call("GET /v1/webhooks/{webhook_id}/deliveries", { params, query })
  return { rows: data.map((delivery) => ({ ...delivery, url })), has_more: meta.has_more }
}

const withId = (one: ShownDelivery): [string, ShownDelivery] => [one.id, one]
