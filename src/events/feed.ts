import { and, asc, desc, eq, gte, like, or, type SQL, sql } from "drizzle-orm"
import { fail, invalid } from "../core/errors"
import { firstEventIdAt, isEventId, madeAt } from "../core/ids"
import { isoFrom, millis, millisFrom, monotonic, sleep } from "../core/time"
import { isSettled } from "../store/columns"
import type { Reader } from "../store/store"
import { onEmitted } from "./emit"
import { placeOfLost } from "./lost-events"
import { API_VERSION } from "./registry"
import { events } from "./tables"

const READABLE_DAYS = 30
const DAY_MILLISECONDS = 86_400_000
const POLL_MILLISECONDS = 1000

export type Event = typeof events.$inferSelect

/** What the world sees of an event, in webhooks and in the feed alike. */
export const envelopeOf = ({ id, type, created_at, data }: Event) => ({
  id,
  type,
  api_version: API_VERSION,
  created_at,
  data,
})

/** A place in a project's feed: behind this event. */
export type FeedPosition = Pick<Event, "position" | "id">

export interface FeedQuery {
  after?: string | undefined
  /** In place of `after`, for a reader that has been there already. */
  from?: FeedPosition | undefined
  limit: number
  types: string[]
}

/** Events at which one look for some types looks. */
const MOST_LOOKED_AT = 1000

interface FeedPart {
  /** Oldest first. */
  rows: Event[]
  /** The last event that it looked at, where it stopped before it had found enough. Others follow it. */
  end: FeedPosition | undefined
}

/** The project's events after a known one; without one from the beginning. */
export async function read(db: Reader, project_id: string, query: FeedQuery): Promise<FeedPart> {
  const known = query.after ? await positionOf(db, project_id, query.after) : query.from
  const readable = known ? undefined : gte(events.created_at, isoFrom(oldestReadable()))
  const filter = and(readable, matching(query.types))
  let from = known ?? (await firstReadable(db, project_id))
  while (true) {
    const ours = and(eq(events.project_id, project_id), from && behind(from), settled(db))
    const part = await look(db, { ours, filter, back: false }, query.limit)
    // A place among events that are too old is none to go on from.
    if (known || part.rows.length > 0 || !part.end || isReadable(part.end)) return part
    from = part.end
  }
}

/** The nearest events before a known one, or before the end for "". */
export async function readBack(
  db: Reader,
  project_id: string,
  { before, limit, types }: Omit<FeedQuery, "after" | "from"> & { before: string },
): Promise<FeedPart> {
  const to = before === "" ? undefined : await positionOf(db, project_id, before, "before")
  const from = await firstReadable(db, project_id)
  const between = and(from && behind(from), to && inFrontOf(to))
  const ours = and(eq(events.project_id, project_id), between, settled(db))
  const readable = gte(events.created_at, isoFrom(oldestReadable()))
  const part = await look(db, { ours, filter: and(readable, matching(types)), back: true }, limit)
  return { ...part, rows: part.rows.reverse() }
}

interface FeedRange {
  ours: SQL | undefined
  filter: SQL | undefined
  back: boolean
}

async function look(
  db: Reader,
  { ours, filter, back }: FeedRange,
  limit: number,
): Promise<FeedPart> {
  const { position, id } = events
  const order = back ? ([desc(position), desc(id)] as const) : ([asc(position), asc(id)] as const)
  let end: FeedPosition | undefined
  if (filter) {
    const places = db
      .select({ position, id })
      .from(events)
      .where(ours)
      .orderBy(...order)
    const [last, next] = await places.limit(2).offset(MOST_LOOKED_AT - 1)
    end = next && last
  }
  const here = sql`(${position}, ${id})`
  const bound = end && (back ? sql`${here} >= ${pairOf(end)}` : sql`${here} <= ${pairOf(end)}`)
  const found = db
    .select()
    .from(events)
    .where(and(ours, filter, bound))
    .orderBy(...order)
  const rows = await found.limit(limit)
  return { rows, end: rows.length < limit ? end : undefined }
}

/** So long before or after the order of its commits an event may have been made. */
const MARGIN_MILLISECONDS = 60_000

/**
 * A place close in front of the events that can be read; undefined where that is the beginning of the feed.
 * A project may keep its events for longer, and none of them must be passed one by one.
 */
async function firstReadable(db: Reader, project_id: string): Promise<FeedPosition | undefined> {
  const { position, id, created_at } = events
  const enough = oldestReadable() - MARGIN_MILLISECONDS
  // In the order of the feed rise the positions, or the ids where all positions are alike.
  const numberOf = (row: FeedPosition) => (db.isAlone ? (madeAt(row.id) ?? 0) : row.position)
  const placeOf = (number: number): FeedPosition =>
    db.isAlone ? { position: 0, id: firstEventIdAt(number) } : { position: number, id: "" }
  const next = async (from?: FeedPosition) => {
    const ours = and(eq(events.project_id, project_id), from && behind(from))
    const rows = db.select({ position, id, created_at }).from(events).where(ours)
    const [row] = await rows.orderBy(asc(position), asc(id)).limit(1)
    const is_old = row !== undefined && millisFrom(row.created_at) < enough
    return is_old ? numberOf(row) : undefined
  }
  let low = await next()
  const last = low === undefined ? undefined : await lastPosition(db, project_id)
  if (low === undefined || !last) return undefined
  for (let high = numberOf(last); high - low > 1; ) {
    const middle = Math.floor((low + high) / 2)
    const old = await next(placeOf(middle))
    if (old === undefined) high = middle
    else low = Math.max(middle, old)
  }
  return placeOf(low)
}

/** As `read`, but waits up to `wait_ms` for the first event, where the feed ends. An aborted signal ends the wait. */
export async function readWaiting(
  db: Reader,
  project_id: string,
  query: FeedQuery,
  wait_ms: number,
  signal: AbortSignal,
): Promise<FeedPart> {
  const look = async () => {
    const part = await read(db, project_id, query)
    return part.rows.length > 0 || part.end ? part : undefined
  }
  const found = await untilFound(db, project_id, { wait_ms, signal, look })
  return found ?? { rows: [], end: undefined }
}

interface EventWait<Found> {
  wait_ms: number
  signal: AbortSignal
  look(): Promise<Found | undefined>
}

/**
 * What `look` finds, at once or as soon as it is there: it looks again after each commit of events of
 * the project, and once a second for what another node did not tell. Undefined when the time is over.
 */
export async function untilFound<Found>(
  db: Reader,
  project_id: string,
  { wait_ms, signal, look }: EventWait<Found>,
): Promise<Found | undefined> {
  const end = monotonic() + wait_ms
  while (true) {
    const wait = nextEvent(db, project_id, Math.min(POLL_MILLISECONDS, end - monotonic()), signal)
    const found = await look()
    if (found !== undefined || signal.aborted || monotonic() >= end) {
      wait.cancel()
      return found
    }
    await wait.ended
  }
}

/** Undefined also for one that is too old to be read. */
export async function lookup(db: Reader, project_id: string, id: string) {
  const ours = and(eq(events.project_id, project_id), eq(events.id, id))
  const rows = isEventId(id) ? await db.select().from(events).where(ours) : []
  return rows.find(({ created_at }) => millisFrom(created_at) >= oldestReadable())
}

/** As `lookup`. Throws 404. */
export const find = async (db: Reader, project_id: string, id: string): Promise<Event> =>
  (await lookup(db, project_id, id)) ?? fail("not_found", "There is no such event.")

/** Hits of a picture that programs load again and again are events, too. */
const MOST_TOLD = 1000

/** The events about one subject, oldest first: the first 1,000 of them. */
export async function about(db: Reader, project_id: string, subject_id: string): Promise<Event[]> {
  const wanted = and(eq(events.subject_id, subject_id), eq(events.project_id, project_id))
  const rows = await db.select().from(events).where(wanted).orderBy(asc(events.id)).limit(MOST_TOLD)
  // Sorted here, or the other index might be walked. Ids of several nodes follow several clocks.
  return rows.sort((a, b) => a.position - b.position)
}

/**
 * Where an event stands, or where it stood that is gone with the database before a restore. Throws 422
 * for an unknown one, and for one too old to be read.
 */
export async function positionOf(
  db: Reader,
  project_id: string,
  after: string,
  field: "after" | "before" = "after",
): Promise<FeedPosition> {
  const ours = and(eq(events.project_id, project_id), eq(events.id, after))
  const [row] = isEventId(after) ? await db.select().from(events).where(ours) : []
  // What is that old was removed by now, and only its id still tells when it was.
  const made_at = isEventId(after) ? madeAt(after) : undefined
  const at = row ? millisFrom(row.created_at) : made_at
  if (at !== undefined && at < oldestReadable()) {
    const text = `This event is too old. Events can be read for ${READABLE_DAYS} days. Leave this parameter out to begin again.`
    throw refusedCursor(field, "cursor_expired", text)
  }
  const place = row ?? (at === undefined ? undefined : await placeOfLost(db, after))
  if (place) return place
  const text = "No event has this id. Use the id of an event of this project."
  throw refusedCursor(field, "unknown_event", text)
}

/** Behind everything that may be read by now; undefined where there is nothing yet. */
export async function lastPosition(db: Reader, project_id: string): Promise<Event | undefined> {
  const rows = db
    .select()
    .from(events)
    .where(and(eq(events.project_id, project_id), settled(db)))
  const [last] = await rows.orderBy(desc(events.position), desc(events.id)).limit(1)
  return last
}

/** The place before all others is undefined. */
export function isBefore(one: FeedPosition | undefined, other: FeedPosition | undefined): boolean {
  if (!other) return false
  if (!one) return true
  if (one.position !== other.position) return one.position < other.position
  return one.id < other.id
}

export const later = (one: FeedPosition | undefined, other: FeedPosition | undefined) =>
  isBefore(one, other) ? other : one

/**
 * The place from which a reader of some types may go on after it found nothing more behind `after`:
 * the end of what could be read before it looked. From its own last event it would pass by all the
 * others again, and that event would grow too old while it keeps asking.
 */
export async function passable(
  db: Reader,
  project_id: string,
  after: string | undefined,
): Promise<FeedPosition | undefined> {
  const last = await lastPosition(db, project_id)
  const from = after ? await positionOf(db, project_id, after) : undefined
  return last && millisFrom(last.created_at) < oldestReadable() ? from : later(from, last)
}

// As a pair, because the index is walked from there; an OR would walk all that came before.
export const behind = (place: FeedPosition): SQL =>
  sql`(${events.position}, ${events.id}) > ${pairOf(place)}`

export const inFrontOf = (place: FeedPosition): SQL =>
  sql`(${events.position}, ${events.id}) < ${pairOf(place)}`

const pairOf = ({ position, id }: FeedPosition): SQL =>
  sql`(${sql.param(position, events.position)}, ${sql.param(id, events.id)})`

const settled = (db: Reader) => isSettled(db, events.position)

const isReadable = ({ id }: FeedPosition) => (madeAt(id) ?? 0) >= oldestReadable()

const oldestReadable = () => millis() - READABLE_DAYS * DAY_MILLISECONDS

const refusedCursor = (field: string, reason: string, message: string) =>
  invalid(field, reason, message, { reason })

/** `email.*`, `*`, or exact types, all of them registered. */
function matching(types: string[]): SQL | undefined {
  if (types.length === 0 || types.includes("*")) return undefined
  return or(
    ...types.map((type) =>
      type.endsWith(".*") ? like(events.type, `${type.slice(0, -1)}%`) : eq(events.type, type),
    ),
  )
}

function nextEvent(db: Reader, project_id: string, milliseconds: number, signal: AbortSignal) {
  const stop = new AbortController()
  const off = onEmitted(db, (projects) => {
    if (!projects || projects.has(project_id)) stop.abort()
  })
  const cancel = () => stop.abort()
  signal.addEventListener("abort", cancel, { once: true })
  const ended = sleep(Math.max(1, milliseconds), stop.signal).finally(() => {
    off()
    signal.removeEventListener("abort", cancel)
  })
  return { ended, cancel }
}
