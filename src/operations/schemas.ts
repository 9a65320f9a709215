import { Type as t } from "@sinclair/typebox"
import { count, flag, id, text } from "../lib/record-fields"

export const MergeInput = t.Object({
  from_id: t.String({
    minLength: 1,
    maxLength: 255,
    description: "The id or external id of the subscriber that is removed.",
  }),
})

export const EraseInput = t.Object({
  confirm: t.String({
    minLength: 1,
    maxLength: 255,
    description:
      "The external id of the subscriber, so that nobody is erased by mistake. For one that was deleted: its id.",
  }),
})

const counts = t.Object(
  {
    messages: count(12, "Messages with their contents, files, attempts and events."),
    captures: count(3, "Mails in the embedded mailbox."),
    inbound_emails: count(1, "Mails that came from the subscriber."),
    events: count(40, "Events and their webhook deliveries."),
    consents: count(2),
    unsubscribes: count(1),
    topics: count(4, "Memberships of topics."),
    suppressions: count(1),
    unsubscribe_links: count(2),
    log_entries: count(9, "Entries of the request log, the audit log and of idempotency."),
  },
  { title: "ErasedCounts" },
)

export const Erased = t.Object(
  {
    erased: flag(true),
    receipt_id: id("The closing record of the chain of consents."),
    counts,
    remains: t.Array(
      t.Object({
        what: text("backups"),
        until: text("Until the backup is deleted. Restoring it brings the data back."),
      }),
      { description: "Copies that the server cannot reach, or reaches later." },
    ),
  },
  { title: "ErasureReceipt" },
)

const rows = (description: string) => t.Array(t.Unknown(), { description, examples: [[]] })

export const SubscriberExport = t.Object(
  {
    data: t.Object({
      exported_at: t.String({ format: "date-time" }),
      subscriber: t.Unknown({
        description: "The Subscriber record. Null for one that was deleted.",
        examples: [{}],
      }),
      preferences: t.Unknown({ examples: [null] }),
      unsubscribes: rows("Unsubscribe records."),
      merged_subscribers: rows(
        "The names of subscribers that were merged into it: `id`, `external_id`, `email`, `phone`, `merged_at`.",
      ),
      consents: rows("Consent records, the oldest first."),
      address_consents: rows("Consent records of its addresses while no subscriber had them."),
      topics: rows("Topics with `key`, `name` and `subscribed_at`."),
      suppressions: rows("Suppression records of its addresses and numbers."),
      unsubscribe_links: rows("What the links of its mail end."),
      messages: rows("Email records with contents, events, attempts and files in base64."),
      inbound_emails: rows("Mails that came from its addresses."),
      events: rows("Events about the subscriber."),
    }),
    meta: t.Object({ request_id: text("req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c") }),
  },
  { title: "SubscriberExport" },
)
