import type { Secrets } from "../core/secrets"
import { type AnyRoute, type Method, projectRow, route } from "../http/route"
import type { Store } from "../store/store"
import { find } from "../subscribers/find-subscriber"
import { Subscriber } from "../subscribers/schemas"
import { toResponse } from "../subscribers/subscribers"
import { eraseSubscriber } from "./erase-subscriber"
import type { ExportParts } from "./export-subscriber"
import * as schemas from "./schemas"
import { lookupDeleted } from "./traced-person"

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
      "Memberships, consents, unsubscribes and messages move here, and the other subscriber is removed. Of many messages the older ones follow a little later. The stricter preference stays. Fields that this one lacks are taken from the other one. At most 100 subscribers can be merged into one.",
    body: schemas.MergeInput,
    example: { from_id: "user-17" },
    response: Subscriber,
    errors: ["subscriber_not_found", "conflict"],
    handle: async ({ caller, params, body }) => {
      const { mergeSubscribers } = await import("./merge-subscribers")
      const kept = await mergeSubscribers(parts.store, caller, params.subscriber_id, body.from_id)
      return { data: toResponse(kept) }
    },
  }),
  route({
    ...by("GET", `${ONE}/export`),
    summary: "Export everything that is held about a subscriber",
    description:
      "One JSON document: record, preferences, consents, topics, suppressions, messages with contents and files, received mail, events. It is made while you read it. The id of a deleted subscriber leads to what is still held under it.",
    produces: "application/json",
    response: schemas.SubscriberExport,
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
      "Messages, contents, files, events, logs, captures, received mail and suppressions go too. The id of a deleted subscriber erases what is still held under it. This cannot be undone. The receipt counts what was removed and says what remains for a while, such as backups.",
    body: schemas.EraseInput,
    example: { confirm: "user-42" },
    response: schemas.Erased,
    errors: ["subscriber_not_found"],
    handle: async ({ caller, params, body }) => ({
      data: await eraseSubscriber(parts, caller, params.subscriber_id, body.confirm),
    }),
  }),
]
