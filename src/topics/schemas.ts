import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { nameText, ONE_LINE, oneOf, orNull } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { count, EXAMPLE_ID, id, rarely, text, time, word } from "../lib/record-fields"
import { NO_PATH_NAME, reservedProblem } from "../lib/reserved-names"
import { slugFrom, TOPIC_KEY } from "../lib/text"
import type { TopicRow } from "./tables"

const MOST_MEMBERS_AT_ONCE = 1000

const DESCRIPTION_CHARACTERS = 1000
const SEARCH_CHARACTERS = 200
/** Of a UUID there are 36; an external id has at most 255. */
const LONGEST_SUBSCRIBER_ID = 255

const DEFAULTS = ["on", "off"] as const
const VISIBILITIES = ["private", "public"] as const

export const Topic = t.Object(
  {
    id: id(),
    key: text("product-news", "It never changes."),
    name: text("Product news"),
    description: rarely(text("What is new in the shop.")),
    default: word(DEFAULTS, "`off`: only members that opted in get what is published."),
    visibility: word(VISIBILITIES, "The page of preferences shows `public` topics."),
    subscriber_count: count(1250),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Topic" },
)

const description = () =>
  t.Optional(orNull(t.String({ maxLength: DESCRIPTION_CHARACTERS, pattern: ONE_LINE })))
const fallback = () =>
  t.Optional(
    t.Unsafe<"on" | "off">({
      ...oneOf(...DEFAULTS),
      description: "What holds for members without a choice of their own: on or off. Default: on.",
    }),
  )
const visibility = () =>
  t.Optional(
    t.Unsafe<"public" | "private">({
      ...oneOf(...VISIBILITIES),
      description: "the page of preferences shows public topics. Default: private.",
    }),
  )

export const NewTopic = t.Object({
  name: nameText(),
  key: t.Optional(
    t.String({
      pattern: TOPIC_KEY,
      not: NO_PATH_NAME,
      description:
        "1 to 64 of a-z, 0-9, dot, _ and -. It never changes. Default: made of the name.",
    }),
  ),
  description: description(),
  default: fallback(),
  default_subscription: t.Optional(
    t.Unsafe<"opt_in" | "opt_out">({
      ...oneOf("opt_in", "opt_out"),
      description: "What the resend client calls `default`: opt_in is on, opt_out is off.",
    }),
  ),
  visibility: visibility(),
})

export const TopicPatch = t.Object({
  name: t.Optional(nameText()),
  description: description(),
  default: fallback(),
  visibility: visibility(),
})

export type TopicChanges = Static<typeof TopicPatch>

/** A new topic, with its key and its defaults. */
export type TopicInput = Pick<TopicRow, "key" | "name" | "description" | "default" | "visibility">

/** Reads a new topic. Without a key it is made of the name. */
export function readTopic(given: Static<typeof NewTopic>, problems: Problems): TopicInput {
  const { name, description = null, visibility = "private" } = given
  const foreign = given.default_subscription && SUBSCRIPTIONS[given.default_subscription]
  const fallback = given.default ?? foreign ?? "on"
  if (foreign && foreign !== fallback) problems.add("default_subscription", "invalid", CONTRARY)
  const key = given.key ?? slugFrom(name)
  if (key === "") problems.add("key", "required", NO_KEY)
  const problem = reservedProblem(key)
  if (problem !== undefined) problems.add("key", "reserved", problem)
  return { key, name, description, default: fallback, visibility }
}

const SUBSCRIPTIONS = { opt_in: "on", opt_out: "off" } as const
const CONTRARY = "default_subscription is another name of default. Give one of them."
const NO_KEY = "No key can be made of this name. Give one of a-z, 0-9, dot, _ and -."

const subscriberIds = (minItems: number) =>
  t.Array(nameText(LONGEST_SUBSCRIBER_ID), {
    minItems,
    maxItems: MOST_MEMBERS_AT_ONCE,
    description: `Up to ${MOST_MEMBERS_AT_ONCE} ids of subscribers, or their external ids.`,
  })

export const MemberList = t.Object({ subscriber_ids: subscriberIds(1) })

export const EXAMPLE_MEMBERS = { subscriber_ids: ["user-1042", EXAMPLE_ID] }

const not_found = () =>
  t.Array(t.String(), { examples: [["user-7"]], description: "Ids that no subscriber has." })

export const MembersAdded = t.Object(
  {
    added: count(998),
    already: count(1, "Subscribers that were members before."),
    not_found: not_found(),
  },
  { title: "MembersAdded" },
)

export const MembersRemoved = t.Object(
  {
    removed: count(2),
    not_found: t.Array(t.String(), {
      examples: [["user-7"]],
      description: "Ids that no member of the topic has.",
    }),
  },
  { title: "MembersRemoved" },
)

export const TopicMember = t.Object(
  {
    subscriber_id: id(),
    external_id: text("user-1042"),
    email: rarely(text("ann@example.com")),
    subscribed_at: time(),
  },
  { title: "TopicMember" },
)

export const SubscribedTopic = t.Object(
  { key: text("product-news"), name: text("Product news"), subscribed_at: time() },
  { title: "SubscribedTopic" },
)

export const topicQuery = pageQuery({
  search: t.Optional(
    t.String({
      maxLength: SEARCH_CHARACTERS,
      description: "A part of the key, the name or the description.",
    }),
  ),
})

export const memberQuery = pageQuery({})
