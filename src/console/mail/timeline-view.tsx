import { useMemo } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Badge, type BadgeTone } from "../parts/badge"
import { Commands } from "../parts/commands"
import { Waiting } from "../parts/empty"
import { Trouble } from "../parts/notice"
import { useLoaded } from "../use-loaded"
import { usePoll } from "../use-poll"
import { timeText } from "./describe"
import type { OpenMail } from "./mail-records"
import { type EndedDeliveries, readTimeline, type TimelineEvent } from "./timeline"

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
      <Commands
        belfry={`belfry emails events ${email_id}`}
        request={requestOf("GET /v1/emails/{email_id}/events", { params: { email_id } })}
      />
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
              {attempts} {attempts === 1 ? "attempt" : "attempts"},{" "}
              {outcomeOf(last_response_status, last_error)}
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
