import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { nameText, orNull } from "../http/field-schemas"
import { categoryField } from "../inbox/note-fields"
import { scheduledAt } from "../messages/schemas"
import {
  carriedFields,
  readMetadata,
  readTags,
  readTemplateFields,
  type TemplateFields,
  templateFields,
} from "../messages/send-body"
import { readScheduledAt } from "../messages/send-fields"
import {
  checkLinks,
  checkOthers,
  NO_TEXT,
  type OtherPushContent,
  otherFields,
  othersOf,
  type PushTexts,
  textFields,
  textsOf,
} from "./push-fields"

const LONGEST_NAME = 255

const TARGETS = ["user_id", "device_id", "subscriber_id", "external_id"] as const

/** The recipient of a push message, by what the request names. */
export interface PushTarget {
  by: (typeof TARGETS)[number]
  name: string
  /** Only devices of the environment `test`, which are left out otherwise. */
  is_test: boolean
}

const target = (description: string) =>
  t.Optional(orNull({ ...nameText(LONGEST_NAME), description }))

export const PushInput = t.Object({
  user_id: target("All devices of this user. One of the four targets is required."),
  device_id: target("One device, by the name that the app gave it, or by its id."),
  subscriber_id: target("All devices of this subscriber: their id or external id."),
  external_id: target("The same, by your own id alone."),
  environment: t.Optional(
    orNull(
      t.Literal("test", { description: "Reaches the devices of the environment `test` alone." }),
    ),
  ),
  ...textFields,
  ...otherFields,
  category: categoryField,
  ...templateFields("`title`, `body`, `image_url`, `url` and `data`"),
  ...carriedFields,
  scheduled_at: t.Optional(orNull(scheduledAt())),
})

/** A send request, read and checked as far as its own fields say. */
export interface SendPush extends TemplateFields {
  target: PushTarget
  texts: PushTexts
  others: OtherPushContent
  ttl_seconds: number | null
  category: string | null
  tags: string[]
  metadata: Record<string, unknown>
  scheduled_at: string | null
}

/** Reads the body of `POST /v1/push`. The result counts only while there are no problems. */
export function readSendPush(given: Static<typeof PushInput>, problems: Problems): SendPush {
  const { ttl_seconds = null, category = null, title, body } = given
  const wanted = readTemplateFields(given, problems)
  const is_inline = wanted.template === null
  const is_silent = is_inline && title == null && body == null
  if (is_silent && !given.content_available) problems.add("title", "required", NO_TEXT)
  if (is_inline && wanted.variables === null) checkLinks(given, problems)
  checkOthers(given, problems)
  return {
    ...wanted,
    target: readTarget(given, problems),
    texts: textsOf(given),
    others: othersOf(given, is_silent),
    ...{ ttl_seconds, category },
    tags: readTags(given.tags, problems),
    metadata: readMetadata(given.metadata, problems),
    scheduled_at: readScheduledAt(given.scheduled_at, "scheduled_at", problems),
  }
}

const ONE_TARGET = "Give one of user_id, device_id, subscriber_id and external_id."

function readTarget(given: Static<typeof PushInput>, problems: Problems): PushTarget {
  const named = TARGETS.flatMap((by) => {
    const name = given[by]
    return name == null ? [] : [{ by, name }]
  })
  const [first] = named
  if (!first) problems.add("user_id", "required", ONE_TARGET)
  if (named.length > 1) problems.add("user_id", "invalid", ONE_TARGET)
  return { ...(first ?? { by: "user_id", name: "" }), is_test: given.environment === "test" }
}
