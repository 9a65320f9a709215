import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { isPast } from "../core/time"
import { oneOf, orNull } from "../http/field-schemas"
import { pageQuery, readTime } from "../http/page"
import { count } from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"
import { MAX_TAG } from "../messages/send-body"
import { INBOX_FILTERS } from "./inbox-list"
import { MARKS } from "./marks"
import type { BulkScope } from "./tables"

/** Messages of one `mark`. */
const MOST_MARKED = 500

/** Bytes of what an action is given along, as JSON. */
const MOST_DATA_BYTES = 16_384

const category = t.Optional(
  t.String({ pattern: CATEGORY_SLUG, description: "Only of this category." }),
)

const before = t.Optional(
  t.String({ description: "Only messages that were created before this time (ISO 8601)." }),
)

export const ownQuery = pageQuery({
  filter: {
    ...oneOf(...INBOX_FILTERS),
    ...{ default: "all" as const, description: "`all` leaves out archived and snoozed messages." },
  },
  category,
  tag: t.Optional(t.String({ maxLength: MAX_TAG, description: "Only with this tag." })),
})

export const ownMeta = t.Object({
  unread_count: count(3),
  unseen_count: count(1),
  last_seq: count(1042, "The number of the last change of the inbox."),
})

export const UnreadCount = t.Object(
  {
    unread: count(3),
    unseen: count(1),
    total: count(10, "Without archived and snoozed messages."),
    by_category: t.Record(t.String(), t.Integer(), {
      examples: [{ billing: 2 }],
      description: "Unread messages.",
    }),
  },
  { title: "InboxCounts" },
)

export const Updated = t.Object({ updated: count(3) }, { title: "InboxUpdated" })

export const ReadAll = t.Object({ category, before })

export const SeenAll = t.Object({ before })

export const ArchiveAll = t.Object({
  category,
  read_only: t.Optional(
    t.Boolean({ default: true, description: "false: messages that are not read, too." }),
  ),
})

/** Which messages a body means that marks all. */
export function readScope(given: Static<typeof ReadAll>, problems: Problems): BulkScope {
  const time = given.before === undefined ? undefined : readTime("before", given.before, problems)
  return {
    ...(given.category !== undefined && { category: given.category }),
    ...(time !== undefined && { before: time }),
  }
}

export const readArchived = (given: Static<typeof ArchiveAll>, problems: Problems): BulkScope => ({
  ...readScope(given, problems),
  ...(given.read_only !== false && { read_only: true as const }),
})

export const MarkInput = t.Object({
  ids: t.Array(t.String({ maxLength: 64 }), { minItems: 1, maxItems: MOST_MARKED }),
  as: oneOf(...MARKS),
})

export const OwnPatch = t.Object({
  read: t.Optional(t.Boolean()),
  seen: t.Optional(t.Boolean()),
  archived: t.Optional(t.Boolean()),
  snoozed_until: t.Optional(
    orNull(t.String({ description: "A future time (ISO 8601). Null ends the snooze." })),
  ),
})

export function readPatch(
  { snoozed_until, ...states }: Static<typeof OwnPatch>,
  problems: Problems,
): Static<typeof OwnPatch> {
  if (snoozed_until == null) return { ...states, ...(snoozed_until === null && { snoozed_until }) }
  const time = readTime("snoozed_until", snoozed_until, problems)
  if (time === undefined) return states
  if (isPast(time)) problems.add("snoozed_until", "invalid", "The time must be in the future.")
  return { ...states, snoozed_until: time }
}

export const ActionInput = t.Object({
  data: t.Optional(
    t.Record(t.String(), t.Unknown(), { description: "At most 16 KiB as JSON. Not kept." }),
  ),
})

export function readAction(given: Static<typeof ActionInput>, problems: Problems) {
  if (given.data && Buffer.byteLength(JSON.stringify(given.data)) > MOST_DATA_BYTES) {
    const text = `The data must have at most ${MOST_DATA_BYTES} bytes as JSON.`
    problems.add("data", "too_large", text)
  }
  return given
}
