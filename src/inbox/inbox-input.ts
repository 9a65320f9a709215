import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { nameText } from "../http/field-schemas"
import {
  carriedFields,
  REQUIRED,
  readMetadata,
  readTags,
  readTemplateFields,
  type TemplateFields,
  templateFields,
} from "../messages/send-body"
import type { InboxPatch } from "./inbox"
import {
  categoryField,
  checkLink,
  checkOthers,
  collapseField,
  expiresField,
  type NoteTexts,
  otherFields,
  othersOf,
  readEnd,
  storedActions,
  TEXT_PARTS,
  textFields,
  textsOf,
} from "./note-fields"

const LONGEST_NAME = 255
const MOST_RECIPIENTS = 500

export const InboxInput = t.Object({
  subscriber_id: t.Optional(nameText(LONGEST_NAME)),
  external_id: t.Optional(nameText(LONGEST_NAME)),
  subscriber_ids: t.Optional(
    t.Array(nameText(LONGEST_NAME), {
      minItems: 1,
      maxItems: MOST_RECIPIENTS,
      description: `Up to ${MOST_RECIPIENTS} ids or external ids.`,
    }),
  ),
  ...textFields,
  ...otherFields,
  category: categoryField,
  collapse_key: collapseField,
  expires_at: expiresField,
  ...carriedFields,
  ...templateFields("`title`, `body`, `action_url` and `action_label`"),
})

export interface SendNote extends TemplateFields {
  /** One external id, or ids of which each may be an external one. */
  to: { external_id: string } | { names: string[] }
  texts: NoteTexts
  others: ReturnType<typeof othersOf>
  category: string | null
  collapse_key: string | null
  expires_at: string | null
  tags: string[]
  metadata: Record<string, unknown>
}

/** Reads the body of `POST /v1/inbox`. The result counts only while there are no problems. */
export function readSendNote(given: Static<typeof InboxInput>, problems: Problems): SendNote {
  const { title, category = null, collapse_key = null, expires_at } = given
  const wanted = readTemplateFields(given, problems)
  const is_inline = wanted.template === null
  if (is_inline && title === undefined) problems.add("title", "required", REQUIRED)
  if (is_inline && wanted.variables === null) checkLink(given.action_url, problems)
  checkOthers(given, problems)
  return {
    ...wanted,
    to: readTarget(given, problems),
    texts: textsOf(given),
    others: othersOf(given),
    ...{ category, collapse_key, expires_at: readEnd(expires_at, problems) },
    tags: readTags(given.tags, problems),
    metadata: readMetadata(given.metadata, problems),
  }
}

function readTarget(
  { subscriber_id, external_id, subscriber_ids }: Static<typeof InboxInput>,
  problems: Problems,
): SendNote["to"] {
  const given = [subscriber_id, external_id, subscriber_ids].filter((one) => one !== undefined)
  if (given.length === 0) problems.add("subscriber_id", "required", ONE_TARGET)
  if (given.length > 1) problems.add("subscriber_id", "invalid", ONE_TARGET)
  if (external_id !== undefined) return { external_id }
  return { names: subscriber_ids ?? [subscriber_id ?? ""] }
}

const ONE_TARGET = "Give one of subscriber_id, external_id and subscriber_ids."

const state = (description: string) => t.Optional(t.Boolean({ description }))

export const InboxChange = t.Object({
  ...textFields,
  ...otherFields,
  category: categoryField,
  expires_at: expiresField,
  ...carriedFields,
  read: state("What is read was seen, too."),
  seen: state("What is not seen is not read."),
  archived: state("The subscriber then finds it among the archived messages alone."),
})

/** Reads the body of a PATCH. What is absent stays. */
export function readInboxChange(
  given: Static<typeof InboxChange>,
  problems: Problems,
): InboxPatch & { category?: string | null } {
  const { category, expires_at, tags, metadata, read, seen, archived, actions } = given
  checkLink(given.action_url, problems)
  checkOthers(given, problems)
  const said = [...TEXT_PARTS, "icon", "image_url", "priority", "data"] as const
  const content = {
    ...Object.fromEntries(said.flatMap((name) => (name in given ? [[name, given[name]]] : []))),
    ...(actions && { actions: storedActions(actions) }),
  }
  return {
    ...(Object.keys(content).length > 0 && { content }),
    ...(category !== undefined && { category }),
    ...(expires_at !== undefined && { expires_at: readEnd(expires_at, problems) }),
    ...(tags && { tags: readTags(tags, problems) }),
    ...(metadata && { metadata: readMetadata(metadata, problems) }),
    ...(read !== undefined && { read }),
    ...(seen !== undefined && { seen }),
    ...(archived !== undefined && { archived }),
  }
}
