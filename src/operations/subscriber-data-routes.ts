import { Type as t } from "@sinclair/typebox"
import type { Secrets } from "../core/secrets"
import { type AnyRoute, type Method, projectRow, route } from "../http/route"
import { count, flag, id, text } from "../lib/record-fields"
import type { Store } from "../store/store"
import { find } from "../subscribers/find-subscriber"
import { Subscriber } from "../subscribers/schemas"
import { eraseSubscriber } from "./erase-subscriber"
import type { ExportParts } from "./export-subscriber"
import { shownSubscriber } from "./shown-subscribers"
import { lookupDeleted } from "./traced-person"

const MergeInput = t.Object({
  from_id: t.String({
    minLength: 1,
    maxLength: 255,
    description: "The id or external id of the subscriber that is removed.",
  }),
})

const EraseInput = t.Object({
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
    devices: count(2),
    users: count(1, "End users with their sessions."),
    suppressions: count(1),
    unsubscribe_links: count(2),
    log_entries: count(9, "Entries of the request log, the audit log and of idempotency."),
  },
  { title: "ErasedCounts" },
)

const Erased = t.Object(
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

const SubscriberExport = t.Object(
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
      devices: rows("Devices with their tokens."),
      users: rows("User records of end users that the subscriber is."),
      user_sessions: rows("Their sessions."),
      memberships: rows("Their memberships in organizations."),
      organization_invitations: rows("Invitations of its addresses to organizations."),
      messages: rows("Records of messages with contents, events, attempts and files in base64."),
      inbound_emails: rows("Mails that came from its addresses."),
      events: rows("Events about the subscriber."),
    }),
    meta: t.Object({ request_id: text("req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c") }),
  },
  { title: "SubscriberExport" },
)

interface SubscriberDataParts extends ExportParts {
  store: Store
  secrets: Secrets
}

const ONE = "/v1/subscribers/{subscriber_id}" as const

const by = <const Path extends string>(method: Method, path: Path) =>
  projectRow(method, path, method === "GET" ? "subscribers:read" : "subscribers:write")

/**
 * What reaches through all folders: to join two subscribers, to show all of one, to erase one. It is loaded
 * when somebody asks for it, because it needs much code and is rare.
 */
export const subscriberDataRoutes = (parts: SubscriberDataParts): AnyRoute[] => [
  route({
    ...by("POST", `${ONE}/merge`),
    summary: "Merge another subscriber into this one",
    description:
      "Memberships, consents, unsubscribes, devices and messages move here, and the other subscriber is removed. If there are many messages, Belfry moves the older ones a little later. The stricter preference stays. Fields that this one lacks are taken from the other one. At most 100 subscribers can be merged into one. A subscriber has at most 100 devices. What is beyond the limit is removed, those first that expired or were not used for longest.",
    body: MergeInput,
    example: { from_id: "user-17" },
    response: Subscriber,
    errors: ["subscriber_not_found", "conflict"],
    handle: async ({ caller, params, body }) => {
      const { mergeSubscribers } = await import("./merge-subscribers")
      const kept = await mergeSubscribers(parts.store, caller, params.subscriber_id, body.from_id)
      return { data: await shownSubscriber(parts.store.read, kept) }
    },
  }),
  route({
    ...by("GET", `${ONE}/export`),
    summary: "Export everything that is held about a subscriber",
    description:
      "One JSON document: record, preferences, consents, topics, suppressions, devices, end users, messages with contents and files, received mail, events. It is made while you read it. The id of a deleted subscriber leads to what is still held under it.",
    produces: "application/json",
    response: SubscriberExport,
    errors: ["subscriber_not_found"],
    handle: async ({ project_id, params, request, request_id }) => {
      const { exportSubscriber } = await import("./export-subscriber")
      const deleted = await lookupDeleted(parts.store.read, project_id, params.subscriber_id)
      const owner = deleted ?? (await find(parts.store.read, project_id, params.subscriber_id))
      return exportSubscriber(parts, owner, { request, request_id })
    },
  }),
  route({
    ...by("POST", `${ONE}/erase`),
    summary: "Erase a subscriber with all personal data",
    description:
      "Also erases devices, end users, messages, contents, files, events, logs, captures, received mail and suppressions. The id of a deleted subscriber erases what is still held under it. This cannot be undone. The receipt says how much was removed, and what remains for a while, such as backups.",
    body: EraseInput,
    example: { confirm: "user-42" },
    response: Erased,
    errors: ["subscriber_not_found"],
    handle: async ({ caller, params, body }) => ({
      data: await eraseSubscriber(parts, caller, params.subscriber_id, body.confirm),
    }),
  }),
]
