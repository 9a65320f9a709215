import * as fanOut from "../fan-out/fan-out"
import { newPublish, Publish, type PublishContents, readPublish } from "../fan-out/publish-input"
import * as publishing from "../fan-out/publishing"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, projectRow, route } from "../http/route"
import * as topics from "./topics"

export interface PublishParts extends ListParts, fanOut.FanOutParts {}

const PUBLISH = "/v1/topics/{topic_key}/publish"
const ALL = "/v1/topics/{topic_key}/publishes"
const ONE = `${ALL}/{publish_id}` as const

const publishQuery = pageQuery({})

export const publishRoutes = (parts: PublishParts, contents: PublishContents): AnyRoute[] => [
  startRoute(parts, contents),
  ...readRoutes(parts),
  cancelRoute(parts),
]

function startRoute(parts: PublishParts, contents: PublishContents): AnyRoute {
  const schema = newPublish(contents)
  return route({
    ...projectRow("POST", PUBLISH, "topics:publish"),
    status: [201, 200],
    summary: "Publish to the members of a topic",
    description:
      "Each member gets one message, unless a choice of the subscriber is against it. The audience is fixed when the publish begins. 200 means that the same `dedupe_key` was used in the last 24 hours: the answer is that publish, and nothing new begins.",
    body: schema,
    example: { channels: ["email"], template_id: "product-news", category: "news" },
    read: (body, problems) => readPublish(contents, body, problems),
    response: Publish,
    errors: [
      "topic_not_found",
      "template_not_found",
      "sender_not_configured",
      "domain_not_verified",
      "invalid_template",
      "template_render_failed",
      "invalid_email",
      "account_frozen",
      "conflict",
    ],
    sends: true,
    idempotent: true,
    handle: ({ caller, params: { topic_key }, body: input, claim }) =>
      publishing.publish(parts, caller, { topic_key, input, claim }),
  })
}

const readRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("GET", ALL, "topics:read"),
    summary: "List the publishes to a topic, newest first",
    description: "The counts are those of now. A publish that runs counts on.",
    query: publishQuery,
    response: Publish,
    errors: ["topic_not_found"],
    handle: async (call) => {
      const topic = await topics.find(store.read, call.project_id, call.params.topic_key)
      const { list, ...publishes } = publishing.list(store.read, topic)
      return listPage(call, cursors, {
        ...publishes,
        list: async (window) => ({
          rows: await fanOut.toResponses(store.read, (await list(window)).rows),
        }),
      })
    },
  }),
  route({
    ...projectRow("GET", ONE, "topics:read"),
    summary: "Show one publish with its counts",
    description:
      "`sent` counts messages that were made, and `failed` those of them that bounced, failed or were cancelled.",
    response: Publish,
    errors: ["topic_not_found", "not_found"],
    handle: async ({ project_id, params }) => {
      const topic = await topics.find(store.read, project_id, params.topic_key)
      const row = await fanOut.find(store.read, project_id, topic.id, params.publish_id)
      return { data: await publishing.toResponse(store.read, row) }
    },
  }),
]

const cancelRoute = ({ store }: ListParts): AnyRoute =>
  route({
    ...projectRow("POST", `${ONE}/cancel`, "topics:publish"),
    summary: "Cancel the rest of a publish",
    description:
      "No more messages are made. Those that wait fail with the reason `cancelled` soon after. 409 means that the publish is over.",
    response: Publish,
    errors: ["topic_not_found", "not_found", "conflict"],
    handle: ({ project_id, params }) =>
      store.tx(async (tx) => {
        const topic = await topics.find(tx, project_id, params.topic_key)
        const row = await fanOut.cancel(tx, project_id, topic.id, params.publish_id)
        return { data: await publishing.toResponse(tx, row) }
      }),
  })
