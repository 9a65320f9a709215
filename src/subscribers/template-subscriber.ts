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
export const packedSubscriber = (subscriber: TemplateSubscriber): Record<string, unknown> =>
  Object.fromEntries(Object.entries(subscriber).filter(([, value]) => !isEmpty(value)))

const isEmpty = (value: unknown): boolean =>
  value === null || (typeof value === "object" && Object.keys(value).length === 0)

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
