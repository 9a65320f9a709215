import { Type as t } from "@sinclair/typebox"
import { oneOf } from "../../../http/field-schemas"
import { valueAt } from "../../../lib/filter-rule"
import type { CallbackRequest, ProviderReport } from "../../../providers/provider"
import { receivedReport, statusReport } from "../provider"

/** A way into JSON, such as `messages.0.id`. */
export const Path = t.String({
  minLength: 1,
  maxLength: 200,
  pattern: "^[^\\u0000-\\u001f\\u007f]+$",
})

const Paths = t.Optional(t.Union([Path, t.Array(Path, { minItems: 1, maxItems: 5 })]))

export const CallbackPaths = t.Object(
  { id: Paths, status: Paths, from: Paths, to: Paths, text: Paths },
  { additionalProperties: false },
)

const OUTCOMES = ["sent", "delivered", "undelivered", "failed"] as const

type TextStatus = (typeof OUTCOMES)[number]

export const StatusMap = t.Record(t.String({ minLength: 1, maxLength: 64 }), oneOf(...OUTCOMES), {
  maxProperties: 100,
})

/** What the words and codes of gateways mean (SMPP 3.4, appendix B, and the report types of Kannel). */
const WORDS: Record<TextStatus, string> = {
  sent: "sent accepted acceptd queued buffered enroute submitted 4 8",
  delivered: "delivered delivrd read 1",
  undelivered: "undelivered undeliv undeliverable expired 2",
  failed: "failed rejected rejectd deleted error 16",
}

const KNOWN = OUTCOMES.flatMap((status) =>
  WORDS[status].split(" ").map((word) => [word, status] as const),
)

export interface CallbackReading {
  status_map?: Record<string, TextStatus>
  callback_paths?: Partial<Record<"id" | "status" | "from" | "to" | "text", string | string[]>>
}

/** Our ids are UUIDs of version 7. A gateway may have such ids of its own, so both meanings count. */
const OUR_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * What a gateway tells: the status of a text of ours, or a text that came in. Undefined where it is neither, such as
 * a status that nobody has given a meaning.
 */
export function readCallback(
  { url, fields }: Pick<CallbackRequest, "url" | "fields">,
  { status_map = {}, callback_paths = {} }: CallbackReading,
): ProviderReport | undefined {
  const found = (name: keyof typeof callback_paths) => textAt(callback_paths[name] ?? name, fields)
  const [id, word] = [found("id"), found("status")]
  const type = word === undefined ? undefined : statuses(status_map).get(word.toLowerCase())
  if (type !== undefined && word !== undefined) {
    // Our own address carries our id, also where the body has one of the gateway's.
    const ours = [new URL(url).searchParams.get("id"), id].find((one) => one && OUR_ID.test(one))
    if (id === undefined && !ours) return undefined
    const notice = { type, response: word, ...(isBad(type) && { provider_code: word }) }
    return statusReport(id, ours ?? undefined, notice)
  }
  const [from, to, text] = [found("from"), found("to"), found("text")]
  return receivedReport(id, from, to ?? "", text)
}

const isBad = (type: TextStatus) => type === "undelivered" || type === "failed"

const statuses = (own: Record<string, TextStatus>): Map<string, TextStatus> =>
  new Map([...KNOWN, ...Object.entries(own).map(([word, to]) => [word.toLowerCase(), to] as const)])

/** The text or number at the first of the paths that has one. */
export function textAt(paths: string | string[], value: object): string | undefined {
  for (const path of [paths].flat()) {
    const found = at(path, value)
    if (typeof found === "string" || typeof found === "number") return String(found)
  }
  return undefined
}

/** `messages[0].id` is `messages.0.id`. A form may have a field whose name has dots. */
export const at = (path: string, value: object): unknown =>
  valueAt(path.replace(/\[(\d+)\]/g, ".$1"), value) ??
  (Object.hasOwn(value, path) ? (value as Record<string, unknown>)[path] : undefined)
