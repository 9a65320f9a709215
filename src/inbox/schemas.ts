import { Type as t } from "@sinclair/typebox"
import { anything, count, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { PRIORITY_WORDS } from "./tables"

const Action = t.Object(
  {
    key: text("accept"),
    label: text("Accept"),
    url: rarely(text("https://example.com/invitations/7")),
    style: maybe(text("primary")),
    completed_at: rarely(time("When the subscriber used it last.")),
  },
  { title: "InboxAction" },
)

const fields = {
  id: id(),
  seq: count(1042, "The number of its last change."),
  subscriber_id: id(),
  title: text("Your invoice is ready"),
  body: maybe(text("It is due on 1 December.")),
  action_url: maybe(text("https://example.com/invoices/7")),
  action_label: maybe(text("Show")),
  actions: t.Array(Action),
  icon: rarely(text("https://example.com/invoice.svg")),
  image_url: rarely(text("https://example.com/invoice.png")),
  category: maybe(text("billing")),
  priority: word(PRIORITY_WORDS),
  data: anything({ invoice: 7 }),
  tags: t.Array(text("invoice")),
  collapse_key: rarely(text("invoice-7")),
  seen_at: maybe(time()),
  read_at: rarely(time()),
  archived_at: rarely(time()),
  snoozed_until: rarely(time()),
  expires_at: rarely(time()),
  created_at: time(),
  updated_at: time(),
}

/** As its subscriber sees it. */
export const OwnInboxMessage = t.Object(fields, {
  title: "SubscriberInboxMessage",
  description: "A message as its subscriber sees it.",
})

export const InboxMessage = t.Object(
  { ...fields, metadata: anything({ order: "A-7" }, "Only the project sees it.") },
  { title: "InboxMessage" },
)

export const InboxStats = t.Object(
  {
    period: t.Object({ start: time(), end: time("The first moment after the period.") }),
    created: count(120),
    seen: count(96, "Messages that were seen first in the period."),
    read: count(80),
    archived: count(12),
  },
  { title: "InboxStats" },
)
