import { Type as t } from "@sinclair/typebox"
import { BulkFailures } from "../http/bulk-items"
import { metadataObject, nameText, ONE_LINE, oneOf, orNull } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { anything, count, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { NO_PATH_NAME } from "../lib/reserved-names"
import { SUBSCRIBER_STATUSES, type SubscriberStatus } from "./tables"

export const LONGEST_EXTERNAL_ID = 255
const LONGEST_URL = 2048
const LONGEST_TAG = 100
const MOST_TAGS = 50
const LONGEST_SEARCH = 200

/** Of one list of subscribers. */
export const MOST_AT_ONCE = 1000

const external_id = () =>
  t.String({
    minLength: 1,
    maxLength: LONGEST_EXTERNAL_ID,
    pattern: ONE_LINE,
    not: NO_PATH_NAME,
    description: "The id that your own system has for the person. It is unique in the project.",
  })

const fields = {
  email: t.Optional(orNull(t.String({ maxLength: 320 }))),
  phone: t.Optional(orNull(t.String({ description: "A phone number, such as +4915112345678." }))),
  name: t.Optional(orNull(nameText())),
  avatar_url: t.Optional(
    orNull(
      t.String({ maxLength: LONGEST_URL, description: "The address of a picture, https or http." }),
    ),
  ),
  locale: t.Optional(
    orNull(t.String({ maxLength: 35, description: "A language tag of BCP 47, such as `de-AT`." })),
  ),
  timezone: t.Optional(
    orNull(t.String({ maxLength: 64, description: "An IANA time zone, such as `Europe/Vienna`." })),
  ),
  metadata: t.Optional(
    metadataObject("Your own data, at most 50 keys and 16 KiB. Templates can use it."),
  ),
  tags: t.Optional(t.Array(nameText(LONGEST_TAG), { maxItems: MOST_TAGS })),
}

export const ExternalName = t.Object({ external_id: external_id() })

export const NewSubscriber = t.Object({ external_id: external_id(), ...fields })

/** Under an external id of the path, which may stand in the body once more. */
export const SubscriberUpsert = t.Object({ external_id: t.Optional(external_id()), ...fields })

export const SubscriberPatch = t.Object({
  external_id: t.Optional(external_id()),
  ...fields,
  status: t.Optional(oneOf(...SUBSCRIBER_STATUSES)),
})

/** As a file of another service tells of a person: a list never makes a status weaker. */
export const BulkSubscriber = t.Object({
  ...NewSubscriber.properties,
  status: t.Optional(
    t.Unsafe<SubscriberStatus>({
      ...oneOf(...SUBSCRIBER_STATUSES),
      description: "Belfry keeps the stricter one of this status and the one that is there.",
    }),
  ),
})

export const BulkMode = t.Object({ mode: oneOf("upsert", "skip") })

export const BulkSubscribers = t.Object({
  subscribers: t.Array(BulkSubscriber, {
    minItems: 1,
    maxItems: MOST_AT_ONCE,
    description: `At most ${MOST_AT_ONCE}. A broken one does not stop the others.`,
  }),
  mode: t.Optional(
    t.Unsafe<"upsert" | "skip">({
      ...oneOf("upsert", "skip"),
      description: "What happens with those that exist: they are changed, or skipped.",
      default: "upsert",
    }),
  ),
})

export const BulkSaved = t.Object(
  {
    created: count(998),
    updated: count(2, "Those that were there, and now have the given fields."),
    skipped: count(0, "Those that were there, with mode `skip`."),
    failed: BulkFailures("subscribers"),
  },
  { title: "BulkSaved" },
)

const EMAIL = "ann@example.com"

export const Subscriber = t.Object(
  {
    id: id(),
    project_id: id(),
    external_id: text("user-42"),
    email: maybe(text(EMAIL)),
    phone: maybe(text("+4915112345678")),
    name: maybe(text("Ann Example")),
    avatar_url: rarely(text("https://example.com/ann.png")),
    locale: maybe(text("de-AT")),
    timezone: maybe(text("Europe/Vienna")),
    metadata: anything({ plan: "pro" }),
    tags: t.Array(text("beta")),
    status: word(
      SUBSCRIBER_STATUSES,
      "`unsubscribed` gets critical messages only, `blocked` gets nothing.",
    ),
    auth_user_id: rarely(id("The end user that this subscriber is.")),
    devices: count(0),
    unread: count(0, "Messages of the inbox that are not read."),
    last_seen_at: rarely(time()),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Subscriber" },
)

export const subscriberQuery = pageQuery({
  search: t.Optional(
    t.String({
      maxLength: LONGEST_SEARCH,
      description:
        "Show subscribers with words that begin like these, in the external id, the email or the name.",
    }),
  ),
  email: t.Optional(
    t.String({ maxLength: 320, description: "Show only subscribers with this email address." }),
  ),
  phone: t.Optional(
    t.String({ maxLength: 20, description: "Show only subscribers with this phone number." }),
  ),
  external_id: t.Optional(
    t.String({
      maxLength: LONGEST_EXTERNAL_ID,
      description: "Show only the subscriber with this external id.",
    }),
  ),
  status: t.Optional(oneOf(...SUBSCRIBER_STATUSES)),
  tag: t.Optional(
    t.String({ maxLength: LONGEST_TAG, description: "Show only subscribers with this tag." }),
  ),
  topic: t.Optional(
    t.String({ maxLength: 64, description: "Show the members of the topic with this key." }),
  ),
})
