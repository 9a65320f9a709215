import { useMemo } from "preact/hooks"
import type { Components } from "../../client/components"
import { useLoaded, usePoll } from "../hooks"
import { Badge, type Tone, Trouble, Waiting } from "../parts/notice"
import { call } from "../transport"
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
  const { events, deliveries, left_out, is_short } = timeline
  const recipients = new Set(events.map(({ recipient_email }) => recipient_email).filter(Boolean))
  return (
    <>
      <ol class="timeline">
        {events.map((event) => (
          <Entry
            key={event.id}
            event={event}
            deliveries={deliveries.get(event.id) ?? []}
            recipient={recipients.size > 1 ? event.recipient_email : null}
          />
        ))}
      </ol>
      {left_out > 0 && (
        <p class="hint">
          {left_out} later {left_out === 1 ? "event is" : "events are"} not shown here.
        </p>
      )}
      {is_short && (
        <p class="hint">
          There are more deliveries to webhooks than this list shows.{" "}
          <code>belfry emails explain {email_id}</code> shows more of them.
        </p>
      )}
    </>
  )
}

const TONES: Record<string, Tone> = {
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

const toneOf = (word: string): Tone => TONES[word] ?? "plain"

interface EntryProps {
  event: EmailEvent
  /** To webhooks, which the event caused. */
  deliveries: ShownDelivery[]
  /** Whose event it is, where the message has several recipients. */
  recipient: string | null
}

const Entry = ({ event, deliveries, recipient }: EntryProps) => (
  <li>
    <p>
      <Badge tone={toneOf(event.type)}>{event.type}</Badge>{" "}
      <time class="soft" dateTime={event.timestamp}>
        {timeText(event.timestamp)}
      </time>
    </p>
    {recipient && (
      <p>
        For <bdi>{recipient}</bdi>
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
function kindOf({ bounce_type, bounce_subtype, actor }: EmailEvent): string {
  if (bounce_type === null) return actor === null ? "" : ACTORS[actor]
  const subtype = bounce_subtype === null ? "" : `: ${bounce_subtype}`
  return `${bounce_type} bounce${subtype}`
}

function outcomeOf(status: number | null, error: string | null): string {
  return status === null ? (error ?? "no answer yet") : `answered ${status}`
}

type EmailEvent = Components["EmailEvents"]["events"][number]
type WebhookDelivery = Components["Delivery"]
type ShownDelivery = WebhookDelivery & { url: string }

const MOST_EVENTS = 100
const MOST_ENDPOINTS = 20
const DELIVERIES_A_PAGE = 100

/** Endpoints with more deliveries than a page are asked by event. These are the most endpoints, and the most events of each. */
const MOST_BUSY_ENDPOINTS = 5
const MOST_EVENTS_ASKED = 20

/** Deliveries to a busy endpoint that have ended, by endpoint and event: nobody asks for them again. */
type EndedDeliveries = Map<string, ShownDelivery[]>

/** The first 100 events of a message, oldest first, and the deliveries of each. `ended` is kept from look to look. */
async function readTimeline(email_id: string, ended: EndedDeliveries) {
  const { data } = await call("GET /v1/emails/{email_id}/events", { params: { email_id } })
  const all = data.events.toSorted((one, other) => one.timestamp.localeCompare(other.timestamp))
  const events = all.slice(0, MOST_EVENTS)
  const { rows, is_short } = await deliveriesOf(events, ended)
  const deliveries = Map.groupBy(rows, ({ event_id }) => event_id)
  return { events, deliveries, left_out: all.length - events.length, is_short }
}

/** A key that may not read webhooks sees none. */
async function deliveriesOf(events: EmailEvent[], ended: EndedDeliveries) {
  const [first] = events
  const query = { per_page: MOST_ENDPOINTS }
  const found = await call("GET /v1/webhooks", { query }).catch(() => undefined)
  if (!first || !found) return { rows: [], is_short: false }
  const since = first.timestamp
  const pages = await Promise.all(found.data.map((endpoint) => pageOf(endpoint, { since })))
  const busy = pages.filter(({ has_more }) => has_more)
  const asked = busy
    .slice(0, MOST_BUSY_ENDPOINTS)
    .flatMap(({ endpoint }) =>
      events.slice(0, MOST_EVENTS_ASKED).map(({ id }) => deliveriesByEvent(endpoint, id, ended)),
    )
  const all = [...pages.map(({ rows }) => rows), ...(await Promise.all(asked))].flat()
  const is_cut = busy.length > 0 && events.length > MOST_EVENTS_ASKED
  return {
    rows: [...new Map(all.map((one) => [one.id, one])).values()],
    is_short: is_cut || busy.length > MOST_BUSY_ENDPOINTS || found.meta.has_more,
  }
}

type Endpoint = Pick<Components["Webhook"], "id" | "url">

/** What came later fills the page of a busy endpoint, so each event is asked for by itself. */
async function deliveriesByEvent(endpoint: Endpoint, event_id: string, ended: EndedDeliveries) {
  const key = `${endpoint.id} ${event_id}`
  const rows = ended.get(key) ?? (await pageOf(endpoint, { event_id })).rows
  if (rows.every(({ status }) => ENDED.has(status))) ended.set(key, rows)
  return rows
}

const ENDED: ReadonlySet<WebhookDelivery["status"]> = new Set(["success", "exhausted"])

async function pageOf(endpoint: Endpoint, which: { since: string } | { event_id: string }) {
  const query = { ...which, per_page: DELIVERIES_A_PAGE }
  const params = { webhook_id: endpoint.id }
  const { data, meta } = await call("GET /v1/webhooks/{webhook_id}/deliveries", { params, query })
  const rows = data.map((delivery) => ({ ...delivery, url: endpoint.url }))
  return { endpoint, rows, has_more: meta.has_more }
}
