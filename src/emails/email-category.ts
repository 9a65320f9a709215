import type {
  NewUnsubscribeLink,
  UnsubscribeLinks,
  UnsubscribeScope,
} from "../consents/unsubscribe-links"
import type { Problems } from "../core/errors"
import { CATEGORY_SLUG } from "../lib/text"
import type { NewMessage } from "../messages/pipeline"
import type { Envelope } from "../messages/tables"

const FORM = new RegExp(CATEGORY_SLUG)

/** The category of a send; null where it has none. */
export function readCategory(value: unknown, path: string, problems: Problems): string | null {
  if (value == null) return null
  if (typeof value === "string" && FORM.test(value)) return value
  const hint =
    "The value must be 1 to 64 lower-case letters, digits, hyphens and underscores. It must begin with a letter or digit."
  return problems.add(path, "invalid", hint) ?? null
}

/** Header fields that the service writes on mail with a category. */
export const UNSUBSCRIBE_FIELD = /^list-unsubscribe(?:-post)?$/i

/** Refuses what would stand twice in the mail. */
export function refuseOwnFields(headers: object, problems: Problems) {
  for (const name of Object.keys(headers)) {
    if (UNSUBSCRIBE_FIELD.test(name)) problems.add(`headers.${name}`, "invalid", WRITTEN)
  }
}

const WRITTEN =
  "The service writes this header on an email with a category. Leave the header out, or the category."

export type CategoryFields = Pick<Envelope, "category" | "unsubscribe">

/**
 * What the envelope keeps of the category: its name, and the token by which its recipient ends it. A mail
 * with copies carries the token of `to`. Nothing for mail without a category, and no token where nobody can
 * end it.
 */
export function categoryFields(
  category: string | null | undefined,
  { project_id, address }: { project_id: string; address: string },
  links: Pick<UnsubscribeLinks, "tokenFor">,
  is_endable = true,
): CategoryFields {
  if (category == null) return {}
  if (!is_endable) return { category }
  const scope = { type: "category" as const, key: category }
  return { category, unsubscribe: links.tokenFor({ project_id, address, scope }) }
}

interface Bodies {
  html: string | null
  text: string | null
}

/**
 * Bodies that were rendered for another recipient, with the links of this one: nobody may unsubscribe,
 * or see the choices of, the first recipient. Bodies without such links stay as they are.
 */
export function withOwnLinks<Content extends Bodies>(
  content: Content,
  before: string | undefined,
  own: string | undefined,
): Content {
  if (before === undefined || own === undefined || before === own) return content
  const replaced = (body: string | null) => body?.replaceAll(before, own) ?? null
  return { ...content, html: replaced(content.html), text: replaced(content.text) }
}

/**
 * What the envelope keeps of the topic of a published mail. Its recipient ends the topic, even where the
 * mail has a category.
 */
export const topicFields = (
  topic: string,
  category: string | null,
  { project_id, address }: { project_id: string; address: string },
  links: Pick<UnsubscribeLinks, "tokenFor">,
): CategoryFields & Pick<Envelope, "topic"> => ({
  ...(category !== null && { category }),
  topic,
  unsubscribe: links.tokenFor({ project_id, address, scope: { type: "topic", key: topic } }),
})

/** The links that these messages carry. */
export const linksIn = (list: NewMessage[]): NewUnsubscribeLink[] =>
  list.flatMap(({ project_id, recipient: address, envelope }) => {
    const { unsubscribe: token } = envelope ?? {}
    const scope = scopeIn(envelope)
    return token === undefined || !scope ? [] : [{ token, project_id, address, scope }]
  })

/** What the recipient of a mail with this envelope ends. */
function scopeIn(envelope: Envelope | null): UnsubscribeScope | undefined {
  const { topic, category } = envelope ?? {}
  if (topic !== undefined) return { type: "topic", key: topic }
  return category === undefined ? undefined : { type: "category", key: category }
}
