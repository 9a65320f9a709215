import { now } from "../core/time"
import { emitAll, type NewEvent } from "../events/emit"
import type { AudienceChannel } from "../lib/preferences"
import type { Tx } from "../store/store"
import type { SubscriberRow } from "./find-subscriber"

/** A choice of a subscriber about the messages that it gets. */
export interface ToldChoice {
  account_id: string
  subscriber: Pick<SubscriberRow, "id" | "project_id" | "external_id">
  type: "unsubscribed" | "resubscribed"
  channel: AudienceChannel
  /** Null: the whole channel. */
  scope: { type: string; key: string | null } | null
  /** In which way, or why. Default: `api`. */
  reason?: string | null | undefined
}

/** Emits the event of a choice, in the transaction that makes it (contract 30, section 6). */
export const notifyChoice = (tx: Tx, told: ToldChoice): Promise<void> => notifyChoices(tx, [told])

/** As `tellChoice`, for all that one request chooses: that may be thousands. */
export async function notifyChoices(tx: Tx, list: ToldChoice[]): Promise<void> {
  if (list.length > 0) await emitAll(tx, list.map(eventOf))
}

function eventOf({ account_id, subscriber, type, channel, scope, reason }: ToldChoice): NewEvent {
  const { id: subscriber_id, project_id, external_id } = subscriber
  const data = {
    ...{ subscriber_id, external_id, channel, scope: scope ?? WHOLE_CHANNEL },
    ...{ reason: reason ?? "api", timestamp: now() },
  }
  return { account_id, project_id, subject_id: subscriber_id, type: `subscriber.${type}`, data }
}

const WHOLE_CHANNEL = { type: "project", key: null }
