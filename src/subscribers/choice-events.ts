import { now } from "../core/time"
import { emit } from "../events/emit"
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
export function tellChoice(tx: Tx, told: ToldChoice): Promise<void> {
  const { account_id, subscriber, type, channel, scope, reason } = told
  const { id: subscriber_id, project_id, external_id } = subscriber
  const data = {
    ...{ subscriber_id, external_id, channel, scope: scope ?? WHOLE_CHANNEL },
    ...{ reason: reason ?? "api", timestamp: now() },
  }
  const subject = { account_id, project_id, subject_id: subscriber_id }
  return emit(tx, { ...subject, type: `subscriber.${type}`, data })
}

const WHOLE_CHANNEL = { type: "project", key: null }
