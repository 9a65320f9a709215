import { type TOptional, Type as t } from "@sinclair/typebox"
import { AUDIENCE_CHANNELS, type AudienceChannel } from "../lib/preferences"
import { count, id, maybe, rarely, text, time, word } from "../lib/record-fields"

const skipped = t.Object({
  no_address: count(3, "They have no address for the channel."),
  preference: count(41, "They chose not to get it, or left the topic before their turn."),
  suppressed: count(2),
  frequency_cap: count(0, "They got as many messages lately as the project allows."),
  quota: count(0, "The monthly quota was used up."),
})

const counts = t.Object({
  planned: count(1250, "The audience of the channel."),
  sent: count(1204, "Messages that were made."),
  skipped,
  failed: count(4, "Of the messages, those that bounced, failed or were cancelled."),
})

const byChannel = Object.fromEntries(
  AUDIENCE_CHANNELS.map((channel) => [channel, t.Optional(counts)]),
) as Record<AudienceChannel, TOptional<typeof counts>>

/** The Publish record of the contract (43, section 3). */
export const Publish = t.Object(
  {
    id: id(),
    topic_key: text("product-news"),
    status: word([
      "completed",
      "scheduled",
      "queued",
      "fanning_out",
      "paused",
      "failed",
      "cancelled",
    ]),
    status_reason: rarely(
      text(
        "account_frozen",
        "Why it waits or failed. `held_after_restore`: an operator resumes or drops it. `no_provider`: it looks again each minute for one that delivers to the next member.",
      ),
    ),
    audience: count(1250, "The members of the topic when it began. 0 before that."),
    channels: t.Object(byChannel),
    scheduled_at: rarely(time()),
    created_at: time(),
    completed_at: maybe(time()),
  },
  { title: "Publish" },
)
