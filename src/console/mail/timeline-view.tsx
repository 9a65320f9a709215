import { useMemo } from "preact/hooks"
import type { Components } from "../../client/components"
import { Badge, type BadgeTone } from "../parts/badge"
import { Waiting } from "../parts/empty"
import { Trouble } from "../parts/notice"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import { usePoll } from "../use-poll"
import { counted, timeText } from "./describe"
import type { OpenMail } from "./mail-commands"

const EVERY_MILLISECONDS = 10_000

/** What happened to the message, and which webhooks heard of it. */
export function TimelineView({ mail }: { mail: OpenMail }) {
  const email_id = mail.email_id ?? ""
  const read = useMemo(() => {
    const ended: EndedDeliveries = new Map()
    return () => readTimeline(email_id, ended)
  }, [email_id])
  const { value: timeline, error, again } = useLoaded(read)
  usePoll(EVERY_MILLISECONDS, again)
  if (error !== undefined) return <Trouble error={error} onRetry={again} />
  if (!timeline) return <Waiting />
  const { entries, left_out, is_short_of_deliveries } = timeline
  const recipients = new Set(entries.map(({ event }) => event.recipient_email ?? ""))
  recipients.delete("")
  return (
    <>
      <ol class="timeline">
        {entries.map((entry) => (
          <Entry key={entry.event.id} entry={entry} has_recipients={recipients.size > 1} />
        ))}
      </ol>
      {left_out > 0 && (
        <p class="hint">
          {left_out} later {left_out === 1 ? "event is" : "events are"} not shown here.
        </p>
      )}
      {is_short_of_deliveries && (
        <p class="hint">
          There are more deliveries to webhooks than this list shows.{" "}
          <code>belfry emails explain {email_id}</code> shows more of them.
        </p>
      )}
    </>
  )
}

const TONES: Record<string, BadgeTone> = {
  "email.delivered": "good",
  "email.bounced": "bad",
  "email.complained": "bad",
  "email.failed": "bad",
  "email.soft_bounced": "warn",
  success: "good",
  failed: "bad",
  exhausted: "bad",
  held: "warn",
  pending: "warn",
}

const toneOf = (word: string): BadgeTone => TONES[word] ?? "plain"

interface EntryProps {
  entry: TimelineEvent
  /** The message has several recipients, so that each event says whose it is. */
  has_recipients: boolean
}

const Entry = ({ entry: { event, deliveries }, has_recipients }: EntryProps) => (
  <li>
    <p>
      <Badge tone={toneOf(event.type)}>{event.type}</Badge>{" "}
      <time class="soft" dateTime={event.timestamp}>
        {timeText(event.timestamp)}
      </time>
    </p>
    {has_recipients && event.recipient_email && (
      <p>
        For <bdi>{event.recipient_email}</bdi>
      </p>
    )}
    {(event.bounce_type || event.actor) && <p class="hint">{kindOf(event)}</p>}
    {event.detail.response && (
      <p class="hint">
        The server said: <bdi>{event.detail.response}</bdi>
      </p>
    )}
    {event.url && (
      <p class="hint">
        <bdi>{event.url}</bdi>
      </p>
    )}
    {deliveries.length > 0 && (
      <ul class="deliveries">
        {deliveries.map(({ id, url, status, attempts, last_response_status, last_error }) => (
          <li key={id}>
            <Badge tone={toneOf(status)}>{status}</Badge> <bdi>{url}</bdi>{" "}
            <span class="soft">
              {counted(attempts, "attempt")}, {outcomeOf(last_response_status, last_error)}
            </span>
          </li>
        ))}
      </ul>
    )}
  </li>
)

const ACTORS = {
  human: "By a person",
  machine: "By a machine",
  unknown: "By a person or a machine",
}

/** `Permanent bounce: NoSuchUser`, or what kind of reader opened the mail or pressed its link. */
function kindOf({ bounce_type, bounce_subtype, actor }: TimelineEvent["event"]): string {
  if (bounce_type === null) return actor === null ? "" : ACTORS[actor]
  const subtype = bounce_subtype === null ? "" : `: ${bounce_subtype}`
  return `${bounce_type} bounce${subtype}`
}

function outcomeOf(status: number | null, error: string | null): string {
  if (status !== null) return `answered ${status}`
  return error === null ? "no answer yet" : error
}

type EmailEvent = Components["EmailEvents"]["events"][number]
type WebhookDelivery = Components["Delivery"]

/** One event of the message, and the deliveries to webhooks that it caused. */
interface TimelineEvent {
  event: EmailEvent
  deliveries: ShownDelivery[]
}

type ShownDelivery = WebhookDelivery & { url: string }

interface Timeline {
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
type EndedDeliveries = Map<string, ShownDelivery[]>

/** The first 100 events of a message, oldest first, each with its webhooks. `ended` is kept from look to look. */
async function readTimeline(email_id: string, ended: EndedDeliveries): Promise<Timeline> {
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
