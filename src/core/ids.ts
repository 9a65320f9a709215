/** UUIDv7: made by us, so a row is known before it is written, and sorted by time of making. */
export const newId = (): string => Bun.randomUUIDv7()

/** `evt_<uuid>`: events have their own prefix because receivers log them beside message ids. */
export const newEventId = (): string => `evt_${Bun.randomUUIDv7()}`

/** `req_<32 hex>` */
export const newRequestId = (): string => `req_${Bun.randomUUIDv7().replaceAll("-", "")}`

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether the text is a UUID as we write them: lower case, with hyphens. */
export const isUuid = (text: string): boolean => uuid.test(text)

/** Whether the text is the id of an event. */
export const isEventId = (text: string): boolean =>
  text.startsWith("evt_") && isUuid(text.slice("evt_".length))

/** When a UUIDv7 was made (RFC 9562, 5.7), in Unix milliseconds; undefined for other texts. */
export const madeAt = (id: string): number | undefined =>
  isUuid(id) && id[14] === "7" ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined

/** The smallest UUIDv7 of a millisecond (RFC 9562, 5.7): ids rise with time, as an index can use. */
export function firstIdAt(milliseconds: number): string {
  const hex = Math.max(0, Math.floor(milliseconds)).toString(16).padStart(12, "0")
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
