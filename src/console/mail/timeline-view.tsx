import { useCallback } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Badge, type BadgeTone } from "../parts/badge"
import { Commands } from "../parts/commands"
import { Waiting } from "../parts/empty"
import { Trouble } from "../parts/notice"
import { useLoaded } from "../use-loaded"
import { usePoll } from "../use-poll"
import { timeText } from "./describe"
import type { OpenMail } from "./mail-records"
import { readTimeline, type TimelineEvent } from "./timeline"

const EVERY_MILLISECONDS = 10_000

/** What happened to the message, and which webhooks heard of it. */
export function TimelineView({ mail }: { mail: OpenMail }) {
  const email_id = mail.email_id ?? ""
  const read = useCallback(() => readTimeline(email_id), [email_id])
  const { value: events, error, again } = useLoaded(read)
  usePoll(EVERY_MILLISECONDS, again)
  if (error !== undefined) return <Trouble error={error} onRetry={again} />
  if (!events) return <Waiting />
  return (
    <>
      <ol class="timeline">
        {events.map((entry) => (
          <Entry key={entry.event.id} entry={entry} />
        ))}
      </ol>
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
  "email.delivery_delayed": "warn",
  success: "good",
  failed: "bad",
  exhausted: "bad",
  held: "warn",
  pending: "warn",
}

const toneOf = (word: string): BadgeTone => TONES[word] ?? "plain"

const Entry = ({ entry: { event, deliveries } }: { entry: TimelineEvent }) => (
  <li>
    <p>
      <Badge tone={toneOf(event.type)}>{event.type}</Badge>{" "}
      <time class="soft" dateTime={event.timestamp}>
        {timeText(event.timestamp)}
      </time>
    </p>
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

function outcomeOf(status: number | null, error: string | null): string {
  if (status !== null) return `answered ${status}`
  return error === null ? "no answer yet" : error
}
