import { and, eq, isNull, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { log } from "../core/log"
import type { Workers } from "../core/workers"
import { API_VERSION } from "../events/registry"
import { events } from "../events/tables"
import { idList, isAmong } from "../store/dialect"
import { prepared } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { problemIn, transform } from "../templates/transform"
import { addStored, bodyBytes } from "./counts"
import type { ClaimedDelivery } from "./delivery-rows"
import { deliveries } from "./tables"

/** The envelopes of these events, as the compact JSON that is sent. By id. */
export async function envelopesOf(db: Reader, event_ids: string[]): Promise<Map<string, string>> {
  const ids = [...new Set(event_ids)]
  if (ids.length === 0) return new Map()
  const rows = await eventsOf(db, { ids })
  return new Map(rows.map((row) => [row.id, envelopeText(row)]))
}

const eventsOf = prepared({ ids: idList }, (db: Reader, slot) => {
  const { id, type, created_at } = events
  const data = sql<string>`${events.data}` // the text of the column, not what it says
  return db
    .select({ id, type, created_at, data })
    .from(events)
    .where(isAmong(db, id, slot.ids))
})

const MOST_CHARACTERS = 4_000_000

/** A cache of envelopes: one event goes to many endpoints, and it never changes. */
export class Envelopes {
  readonly #cached = new Map<string, string>()
  #characters = 0

  async of(db: Reader, event_ids: string[]): Promise<ReadonlyMap<string, string>> {
    const missing = event_ids.filter((id) => !this.#cached.has(id))
    if (missing.length === 0) return this.#cached
    if (this.#characters > MOST_CHARACTERS) {
      this.#cached.clear()
      this.#characters = 0
      return this.of(db, event_ids)
    }
    for (const [id, body] of await envelopesOf(db, missing)) {
      if (this.#cached.has(id)) continue
      this.#cached.set(id, body)
      this.#characters += body.length
    }
    return this.#cached
  }
}

/** The stored text is not parsed, so that every attempt of every node sends the same bytes. */
const envelopeText = (event: {
  id: string
  type: string
  created_at: string
  data: string
}): string =>
  `{"id":${JSON.stringify(event.id)},"type":${JSON.stringify(event.type)},` +
  `"api_version":"${API_VERSION}","created_at":"${event.created_at}","data":${event.data}}`

interface TransformParts {
  store: Store
  workers: Workers
}

export interface DeliveryBody {
  text: string
  transform_failed: boolean
}

/**
 * The body of a delivery. An endpoint's transform runs before the first attempt, and its result is
 * stored before it is sent. Where it gives no JSON, the plain envelope is sent. Undefined where the
 * event is gone. A promise only where the transform runs; it rejects with `service_unavailable`
 * when the transform could not be tried.
 */
export function bodyFor(
  parts: TransformParts,
  row: ClaimedDelivery,
  transform: string | null,
  envelope: string | undefined,
): DeliveryBody | undefined | Promise<DeliveryBody> {
  const { body } = row
  // A stored body that is the envelope itself: the transform failed before the first attempt.
  if (body !== null) return { text: body, transform_failed: body === envelope }
  if (envelope === undefined) return undefined
  // A transform that was set between two attempts must not change the body of the first one.
  if (transform === null || row.attempts > 0) return { text: envelope, transform_failed: false }
  return transformedBody(parts, row, transform, envelope)
}

async function transformedBody(
  { store, workers }: TransformParts,
  row: ClaimedDelivery,
  transform: string,
  envelope: string,
): Promise<DeliveryBody> {
  const rendered = await renderTransform(workers, transform, JSON.parse(envelope))
  const text = rendered ?? envelope
  const unset = and(eq(deliveries.id, row.id), isNull(deliveries.body))
  await store.tx(async (tx) => {
    const { id, project_id } = deliveries
    const update = tx.update(deliveries).set({ body: text }).where(unset)
    const written = await update.returning({ id, project_id })
    await addStored(
      tx,
      written.map((one) => ({ ...one, bytes: bodyBytes(text) })),
    )
  })
  return { text, transform_failed: rendered === undefined }
}

/**
 * Refuses a transform that can never render: `invalid_template`, with `line` and `column` where they
 * are known. Only an event shows whether it gives JSON.
 */
export async function checkTransform(workers: Workers, source: string): Promise<void> {
  const problem = await problemIn(workers, source)
  if (!problem) return
  const { reason, message, line, column } = problem
  const position = line === null ? "" : ` (line ${line})`
  const details = { field: "transform", reason, line, column }
  fail("invalid_template", `The transform is not a valid template: ${message}${position}`, details)
}

/**
 * The body that the transform makes of an envelope: Handlebars in which `{{x}}` is escaped for the
 * inside of a JSON string and `{{json x}}` writes a whole value. Undefined when it does not give a
 * JSON body. Rejects with `service_unavailable` when it was not tried: then the delivery waits, and
 * the plain envelope is not sent.
 */
export async function renderTransform(
  workers: Workers,
  source: string,
  envelope: object,
): Promise<string | undefined> {
  const rendered = await transform(workers, source, envelope)
  if ("problem" in rendered) {
    log.info("a transform could not be rendered", { reason: rendered.problem.reason })
    return undefined
  }
  const body = rendered.text.trim()
  return isJson(body) ? body : undefined
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
