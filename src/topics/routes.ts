import * as fanOut from "../fan-out/fan-out"
import { newPublish, Publish, type PublishContents, readPublish } from "../fan-out/publish-input"
import * as publishing from "../fan-out/publishing"
import { isPublishing } from "../fan-out/publishing"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { nounRows } from "../http/noun-rows"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, projectRow, route } from "../http/route"
import type { ListWindow } from "../store/rows"
import { find } from "../subscribers/find-subscriber"
import * as members from "./memberships"
import * as schemas from "./schemas"
import * as topics from "./topics"

const ALL = "/v1/topics"
const ONE = `${ALL}/{topic_key}` as const
const MEMBERS = `${ONE}/subscribers` as const

const READ = "topics:read"
const WRITE = "topics:write"

export const topicRoutes = (parts: ListParts): AnyRoute[] => [
  ...plainRoutes(parts),
  ...memberRoutes(parts),
  ...removalRoutes(parts),
  subscribedRoute(parts),
]

const plainRoutes = (parts: ListParts): AnyRoute[] => {
  const rows = nounRows(topics.topic, schemas.Topic, [READ, WRITE], parts)
  return [
    rows.create(ALL, {
      summary: "Make a topic",
      description:
        "A topic is a subject that subscribers follow. Without `key` it gets one that is made of the name. The key never changes.",
      body: schemas.NewTopic,
      example: { name: "Product news", key: "product-news" },
      read: schemas.readTopic,
      errors: ["conflict"],
      create: topics.create,
    }),
    rows.list(ALL, {
      summary: "List topics, newest first",
      description: "`search` looks at keys, names and descriptions.",
      query: schemas.topicQuery,
      filter: ({ search }) => ({ filter: topics.searching(search) }),
    }),
    rows.get(ONE, {
      summary: "Show one topic",
      description: "`subscriber_count` is the number of its members now.",
      errors: ["topic_not_found"],
    }),
    rows.change(ONE, {
      summary: "Change a topic",
      description: "Fields that are absent stay as they are. The key cannot change.",
      body: schemas.TopicPatch,
      example: { name: "News", visibility: "public" },
      errors: ["topic_not_found"],
      change: topics.change,
    }),
    rows.remove(ONE, {
      summary: "Delete a topic and its memberships",
      description: "409 means that a publish to it is not over. Subscribers stay.",
      errors: ["topic_not_found", "conflict"],
      remove: topics.removeUnless(isPublishing),
    }),
  ]
}

const memberRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("GET", MEMBERS, READ),
    summary: "List the members of a topic, the latest first",
    description: "`after` and `before` take the id of a subscriber.",
    query: schemas.memberQuery,
    response: schemas.TopicMember,
    errors: ["topic_not_found"],
    handle: async (call) => {
      const topic = await topics.find(store.read, call.project_id, call.params.topic_key)
      const keyOf = (name: string) => members.numberOf(store.read, topic, name)
      const list = (window: ListWindow) => members.listMembers(store.read, topic, window)
      return listPage(call, cursors, { keyOf, list }, ({ id: _, ...member }) => member)
    },
  }),
  route({
    ...projectRow("POST", MEMBERS, WRITE),
    summary: "Add up to 1,000 subscribers to a topic",
    description:
      "Members stay members. `not_found` names the ids that no subscriber of the project has.",
    body: schemas.MemberList,
    example: schemas.EXAMPLE_MEMBERS,
    response: schemas.MembersAdded,
    errors: ["topic_not_found"],
    idempotent: true,
    handle: async ({ project_id, params, body, claim }) =>
      answerOnce(
        store,
        claim,
        async (tx) => {
          const topic = await topics.find(tx, project_id, params.topic_key)
          return members.join(tx, topic, body.subscriber_ids)
        },
        project_id,
      ),
  }),
]

const removalRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("DELETE", MEMBERS, WRITE),
    summary: "Remove up to 1,000 subscribers from a topic",
    description: "`not_found` names the ids that no member has. What they chose stays.",
    body: schemas.MemberList,
    example: schemas.EXAMPLE_MEMBERS,
    response: schemas.MembersRemoved,
    errors: ["topic_not_found"],
    handle: ({ project_id, params, body }) =>
      store.tx(async (tx) => {
        const topic = await topics.find(tx, project_id, params.topic_key)
        return { data: await members.leave(tx, topic, body.subscriber_ids) }
      }, project_id),
  }),
  route({
    ...projectRow("DELETE", `${MEMBERS}/{subscriber_id}`, WRITE),
    summary: "Remove one subscriber from a topic",
    description: "The path takes the id of the subscriber or the external id.",
    response: Deleted,
    errors: ["topic_not_found", "subscriber_not_found"],
    handle: ({ project_id, params }) =>
      store.tx(async (tx) => {
        const topic = await topics.find(tx, project_id, params.topic_key)
        return deleted(await members.leaveOne(tx, topic, params.subscriber_id))
      }),
  }),
]

const subscribedRoute = ({ store, cursors }: ListParts): AnyRoute =>
  route({
    ...projectRow("GET", "/v1/subscribers/{subscriber_id}/topics", READ),
    summary: "List the topics of a subscriber, the latest first",
    description: "`after` and `before` take the key of a topic.",
    query: schemas.memberQuery,
    response: schemas.SubscribedTopic,
    errors: ["subscriber_not_found"],
    handle: async (call) => {
      const { project_id, params } = call
      const { id } = await find(store.read, project_id, params.subscriber_id)
      const keyOf = async (key: string) => {
        const topic = await topics.find(store.read, project_id, key)
        return members.momentOf(store.read, id, topic.id)
      }
      const list = (window: ListWindow) => members.topicsOf(store.read, id, window)
      return listPage(call, cursors, { keyOf, list }, ({ key, name, subscribed_at }) => {
        return { key, name, subscribed_at }
      })
    },
  })

export interface PublishParts extends ListParts, fanOut.FanOutParts {}

const PUBLISH = `${ONE}/publish` as const
const PUBLISHES = `${ONE}/publishes` as const
const ONE_PUBLISH = `${PUBLISHES}/{publish_id}` as const

const publishQuery = pageQuery({})

export const publishRoutes = (parts: PublishParts, contents: PublishContents): AnyRoute[] => [
  startRoute(parts, contents),
  ...publishReads(parts),
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
      "sms_not_configured",
      "push_not_configured",
      "domain_not_verified",
      "invalid_template",
      "template_render_failed",
      "invalid_email",
      "invalid_url",
      "account_frozen",
      "conflict",
    ],
    sends: true,
    idempotent: true,
    handle: ({ caller, params: { topic_key }, body: input, claim }) =>
      publishing.publish(parts, caller, { topic_key, input, claim }),
  })
}

const publishReads = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("GET", PUBLISHES, READ),
    summary: "List the publishes to a topic, newest first",
    description: "The counts are those of now, and they grow while a publish runs.",
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
    ...projectRow("GET", ONE_PUBLISH, READ),
    summary: "Show one publish with its counts",
    description:
      "`sent` is the number of messages that were made. `failed` is the number of those that bounced, failed or were cancelled.",
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
    ...projectRow("POST", `${ONE_PUBLISH}/cancel`, "topics:publish"),
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
