import type { subscribers } from "./tables"

type Row = typeof subscribers.$inferSelect

/** What templates are told of their recipient (`{{subscriber.name}}`). */
export type TemplateSubscriber = Pick<
  Row,
  | "id"
  | "external_id"
  | "email"
  | "phone"
  | "name"
  | "avatar_url"
  | "locale"
  | "timezone"
  | "metadata"
  | "tags"
>

export const templateSubscriber = (row: Row): TemplateSubscriber => {
  const { id, external_id, email, phone, name, avatar_url, locale, timezone, metadata, tags } = row
  return { id, external_id, email, phone, name, avatar_url, locale, timezone, metadata, tags }
}

/** Without what is empty, to be stored with every message; `wholeSubscriber` undoes it. */
export function packedSubscriber(subscriber: TemplateSubscriber): Record<string, unknown> {
  const packed: Record<string, unknown> = {}
  for (const name in subscriber) {
    const value = subscriber[name as keyof TemplateSubscriber]
    if (!isEmpty(value)) packed[name] = value
  }
  return packed
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== "object") return false
  for (const _ in value) return false
  return true // null has no names either
}

const EMPTY = {
  email: null,
  phone: null,
  name: null,
  avatar_url: null,
  locale: null,
  timezone: null,
  metadata: {},
  tags: [],
}

/** What was packed. */
export const wholeSubscriber = (packed: Record<string, unknown>): Record<string, unknown> => ({
  ...EMPTY,
  ...packed,
})
