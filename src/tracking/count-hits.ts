import { createHash } from "node:crypto"
import { and, eq, inArray } from "drizzle-orm"
import { isoFrom, millisFrom } from "../core/time"
import { emitAll, type NewEvent } from "../events/emit"
import { withDefaults } from "../identity/caller"
import { projects } from "../identity/tables"
import { isMailProxy, isScanner, mailClientOf } from "../lib/mail-client"
import { eventsOf } from "../messages/event-data"
import { messages } from "../messages/tables"
import { forShare, forUpdate, idList, isAmong } from "../store/columns"
import { inserter, newRowInserter, prepared, updater } from "../store/statements"
import type { Tx } from "../store/store"
import { type HitActor, messageTracking, type RecentHit, trackingLinks } from "./tables"

/** The same hit of one visitor, as often as it came. */
interface RepeatedHit extends Omit<TrackedHit, "at"> {
  times: number
  /** Epoch milliseconds, in their order; the first ones where there are many. */
  moments: number[]
}

export interface MessageHits {
  message_id: string
  hits: Map<string, RepeatedHit>
}

/** Latest hits that are shown of a message. */
const MOST_RECENT = 50

/** People that are told apart, of a message and of each of its links. */
const MOST_VISITORS = 200

/** Events of a message for each type and actor. Further hits are only counted. */
const MOST_EVENTS = 100

type TrackingRow = typeof messageTracking.$inferSelect
type LinkRow = typeof trackingLinks.$inferSelect
type HitMessage = Awaited<ReturnType<typeof findMessages>>[number]

/** A hit that was classified, and how many more like it came. */
interface CountedHit extends TrackedHit {
  actor: HitActor
  times: number
}

/**
 * Adds hits to the counters of their messages and links, and emits `email.opened` and
 * `email.clicked`: for machines only in projects with `emit_machine_events`. Hits of messages that
 * are gone are left out. The status of a message never changes by it.
 */
export async function countHits(tx: Tx, batch: MessageHits[]): Promise<undefined[]> {
  const nothing = batch.map(() => undefined)
  const given = new Map(batch.map(({ message_id, hits }) => [message_id, [...hits.values()]]))
  const found = await findMessages(tx, { ids: [...given.keys()] })
  if (found.length === 0) return nothing
  const rows = await heldRows(tx, found)
  const classified = found.map((message) => {
    const recent = rows.get(message.id)?.recent ?? []
    return { message, hits: classify(message, given.get(message.id) ?? [], recent) }
  })
  const events = await eventsFor(tx, classified, rows)
  for (const { message, hits } of classified) {
    const row = rows.get(message.id)
    if (row) for (const hit of hits) addTo(row, hit)
  }
  await updateTracking(tx, [...rows.values()])
  await countLinks(tx, classified)
  await emitAll(tx, events)
  return nothing
}

interface ClassifiedMessage {
  message: HitMessage
  hits: CountedHit[]
}

/** The rows of the messages, made where there was none, held until the end of the transaction. */
async function heldRows(tx: Tx, found: HitMessage[]): Promise<Map<string, TrackingRow>> {
  const ids = found.map(({ id }) => id).sort()
  await insertTracking(
    tx,
    ids.map((message_id) => ({ ...NO_HITS, message_id })),
  )
  const rows = await findTracking(tx, { ids })
  return new Map(rows.map((row) => [row.message_id, row]))
}

/** In the order in which they came. */
function classify(message: HitMessage, given: RepeatedHit[], recent: RecentHit[]): CountedHit[] {
  const { delivered_at, sent_at, created_at } = message
  const hits = given.flatMap(({ moments, times, ...hit }) =>
    moments.map((at, index) => ({
      ...hit,
      at,
      times: index === moments.length - 1 ? 1 + times - moments.length : 1,
    })),
  )
  hits.sort((one, other) => one.at - other.at)
  const isInBurst = burstsIn([...hitsSince((hits[0]?.at ?? 0) - BURST_MS, recent), ...hits])
  const since = millisFrom(delivered_at ?? sent_at ?? created_at)
  return hits.map((hit) => ({ ...hit, actor: actorOf(hit, { delivered_at: since, isInBurst }) }))
}

/** Those that a burst could have begun with. */
function hitsSince(moment: number, recent: RecentHit[]): TimedHit[] {
  const found: TimedHit[] = []
  for (const one of recent) {
    const at = millisFrom(one.timestamp)
    if (at < moment) break // the newest come first
    found.push({ ...one, at })
  }
  return found
}

/** Changes the row by one hit. */
function addTo(row: TrackingRow, hit: CountedHit) {
  const { type, actor, times, visitor } = hit
  const at = isoFrom(hit.at)
  row[`${type}_total`] += times
  row[`${type}_first_at`] ??= at
  row[`${type}_last_at`] = at
  if (actor === "machine") row[`${type}_machine`] += times
  if (actor === "human") {
    row[`${type}_human`] += times
    row[`${type}_unique`] += isNew(row.visitors[type], visitor)
    if (type === "open") {
      row.opened_at ??= at
      row.last_opened_at = at
    } else {
      row.clicked_at ??= at
      row.last_clicked_at = at
    }
  }
  const { url, user_agent } = hit
  const shown: RecentHit = {
    ...{ type, timestamp: at, url, actor, visitor },
    ...mailClientOf(user_agent),
  }
  row.recent = [shown, ...row.recent].slice(0, MOST_RECENT)
}

/** 1 for a visitor that is seen for the first time. It is remembered then. */
function isNew(visitors: string[], visitor: string): 0 | 1 {
  if (visitors.includes(visitor) || visitors.length >= MOST_VISITORS) return 0
  visitors.push(visitor)
  return 1
}

async function countLinks(tx: Tx, classified: ClassifiedMessage[]) {
  const clicks = classified.flatMap(({ message, hits }) =>
    hits.flatMap((hit) => (hit.url === null ? [] : [{ ...hit, url: hit.url, of: message.id }])),
  )
  if (clicks.length === 0) return
  const keyOf = (message_id: string, link: string) => `${message_id} ${link}`
  const known = await lookupLinks(tx, clicks)
  const rows = new Map(known.map((row) => [keyOf(row.message_id, row.link), row]))
  const fresh: LinkRow[] = []
  for (const { url, of: message_id, at, actor, times, visitor } of clicks) {
    const link = linkOf(url)
    const last_at = isoFrom(at)
    const key = keyOf(message_id, link)
    const row = rows.get(key) ?? { message_id, link, url, ...NO_CLICKS(), last_at }
    if (!rows.has(key)) {
      rows.set(key, row)
      fresh.push(row)
    }
    row.total += times
    row.last_at = last_at
    if (actor !== "human") continue
    row.human += times
    row.unique += isNew(row.visitors, visitor)
  }
  await insertLinks(tx, fresh)
  await updateLinks(tx, known)
}

const NO_CLICKS = () => ({ total: 0, unique: 0, human: 0, visitors: [] as string[] })

const LINK_BYTES = 12

/** Long enough that two links of one message differ. */
const linkOf = (url: string) =>
  createHash("sha256").update(url).digest().toString("base64url", 0, LINK_BYTES)

/** The rows of the messages are held, so nobody else adds a link meanwhile. */
const lookupLinks = (tx: Tx, clicks: { of: string; url: string }[]): Promise<LinkRow[]> => {
  const ids = [...new Set(clicks.map((click) => click.of))]
  const links = [...new Set(clicks.map(({ url }) => linkOf(url)))]
  const ours = and(inArray(trackingLinks.message_id, ids), inArray(trackingLinks.link, links))
  return Promise.resolve(tx.select().from(trackingLinks).where(ours))
}

/** The events of the hits, of which the rows do not know yet. */
async function eventsFor(
  tx: Tx,
  classified: ClassifiedMessage[],
  rows: Map<string, TrackingRow>,
): Promise<NewEvent[]> {
  const told = await projectsWithMachines(tx, classified)
  return classified.flatMap(({ message, hits }) => {
    const row = rows.get(message.id) ?? { ...NO_HITS, message_id: message.id }
    const room = {
      open: { human: MOST_EVENTS - row.open_human, other: MOST_EVENTS - othersOf(row, "open") },
      click: { human: MOST_EVENTS - row.click_human, other: MOST_EVENTS - othersOf(row, "click") },
    }
    return hits.flatMap((hit) => {
      const kind = hit.actor === "human" ? "human" : "other"
      if (kind === "other" && !told.has(message.project_id)) return []
      return room[hit.type][kind]-- > 0 ? hitEvents(message, hit) : []
    })
  })
}

const othersOf = (row: TrackingRow, type: RecentHit["type"]) =>
  row[`${type}_total`] - row[`${type}_human`]

function hitEvents(
  message: HitMessage,
  { type, at, url, actor, user_agent }: CountedHit,
): NewEvent[] {
  // All recipients have the same pixel and links.
  const [to, ...copies] = message.recipients
  const address = copies.length > 0 ? "" : (to?.email ?? "")
  const fact = { type: type === "open" ? "opened" : "clicked", address }
  return eventsOf(message, fact, isoFrom(at)).map((event) => {
    const data = { ...event.data, recipient_email: address || null, url, actor, user_agent }
    return { ...event, data }
  })
}

/** Those of the projects that want events of machines, too. Not asked where no machine came. */
async function projectsWithMachines(tx: Tx, classified: ClassifiedMessage[]): Promise<Set<string>> {
  const asked = classified.filter(({ hits }) => hits.some(({ actor }) => actor !== "human"))
  const ids = [...new Set(asked.map(({ message }) => message.project_id))]
  if (ids.length === 0) return new Set()
  const columns = { id: projects.id, settings: projects.settings }
  const rows = await tx.select(columns).from(projects).where(inArray(projects.id, ids))
  const wanting = rows.filter(({ settings }) => withDefaults(settings).emit_machine_events)
  return new Set(wanting.map(({ id }) => id))
}

const COUNTERS = {
  open_total: 0,
  open_unique: 0,
  open_human: 0,
  open_machine: 0,
  open_first_at: null,
  open_last_at: null,
  opened_at: null,
  last_opened_at: null,
  click_total: 0,
  click_unique: 0,
  click_human: 0,
  click_machine: 0,
  click_first_at: null,
  click_last_at: null,
  clicked_at: null,
  last_clicked_at: null,
} satisfies Partial<TrackingRow>

const NO_HITS: Omit<TrackingRow, "message_id"> = {
  ...COUNTERS,
  visitors: { open: [], click: [] },
  recent: [],
}

const { id, account_id, project_id, channel, recipients, tags, metadata, subject } = messages
const { sent_at, delivered_at, created_at } = messages

/** The columns that hits and their events need. */
const NEEDED = {
  ...{ id, account_id, project_id, channel, recipients, tags, metadata, subject },
  ...{ sent_at, delivered_at, created_at },
}

/** Held, so that the retention deletes none of them before its hits are written. */
const findMessages = prepared({ ids: idList }, (tx: Tx, slot) =>
  forShare(
    tx
      .select(NEEDED)
      .from(messages)
      .where(and(isAmong(tx, messages.id, slot.ids), eq(messages.channel, "email")))
      .orderBy(messages.id),
  ),
)

const findTracking = prepared({ ids: idList }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select()
      .from(messageTracking)
      .where(isAmong(tx, messageTracking.message_id, slot.ids))
      .orderBy(messageTracking.message_id),
  ),
)

const insertTracking = newRowInserter(messageTracking, "message_id")

const updateTracking = updater(messageTracking, {
  where: ["message_id"],
  set: [...(Object.keys(COUNTERS) as (keyof typeof COUNTERS)[]), "visitors", "recent"],
  clear: [],
})

const insertLinks = inserter(trackingLinks)

const updateLinks = updater(trackingLinks, {
  where: ["message_id", "link"],
  set: ["total", "unique", "human", "last_at", "visitors"],
  clear: [],
})

/** Nobody reads a mail this soon. */
const SOONEST_READER_MS = 2_000

/** A hit of a link or pixel, as far as it tells what made it. */
interface TrackedHit {
  type: "open" | "click"
  url: string | null
  /** Epoch milliseconds. */
  at: number
  visitor: string
  user_agent: string | null
  /** The request says that nobody looks at the answer yet. */
  is_prefetch: boolean
}

/** Headers of requests that a program makes ahead of its user. */
export function isPrefetch({ headers }: Pick<Request, "headers">): boolean {
  return ["purpose", "sec-purpose", "x-purpose", "x-moz"].some((name) =>
    /prefetch|prerender|preview/i.test(headers.get(name) ?? ""),
  )
}

/** So long a burst may last. */
export const BURST_MS = 2_000

/** A person does not follow so many different links of one mail in that time. */
const BURST_LINKS = 3

/** What bursts are found in. */
type TimedHit = Pick<TrackedHit, "type" | "url" | "at" | "visitor">

/**
 * The maker of a hit (contract 20, section 4): a machine where a known proxy or scanner says so, the
 * request is a prefetch, it comes within two seconds of the delivery, or it belongs to a burst. Unknown
 * where the request names no program. `delivered_at` is in epoch milliseconds.
 */
function actorOf(
  hit: TrackedHit,
  { delivered_at, isInBurst }: { delivered_at: number; isInBurst: (hit: TimedHit) => boolean },
): HitActor {
  const { user_agent, is_prefetch, at } = hit
  const program = user_agent ?? ""
  if (is_prefetch || isMailProxy(program) || isScanner(program)) return "machine"
  if (at - delivered_at < SOONEST_READER_MS || isInBurst(hit)) return "machine"
  return program === "" ? "unknown" : "human"
}

/**
 * Tells which hits of one mail belong to a burst: three different links followed within two seconds,
 * by one visitor or several, and what such a visitor loads within two seconds of it.
 */
function burstsIn(hits: TimedHit[]): (hit: TimedHit) => boolean {
  const clicks = hits.filter(({ type }) => type === "click").sort((one, two) => one.at - two.at)
  const spans: { from: number; to: number }[] = []
  const seen = new Map<string, number>()
  let first = 0
  for (const { url, at } of clicks) {
    seen.set(url ?? "", (seen.get(url ?? "") ?? 0) + 1)
    for (let early = clicks[first]; early && at - early.at > BURST_MS; early = clicks[++first]) {
      const left = (seen.get(early.url ?? "") ?? 0) - 1
      if (left > 0) seen.set(early.url ?? "", left)
      else seen.delete(early.url ?? "")
    }
    if (seen.size < BURST_LINKS) continue
    const from = clicks[first]?.at ?? at
    const last = spans.at(-1)
    if (last && from <= last.to) last.to = at
    else spans.push({ from, to: at })
  }
  if (spans.length === 0) return () => false
  const isWithin = (at: number, slack_ms: number) =>
    spans.some(({ from, to }) => at >= from - slack_ms && at <= to + slack_ms)
  const scanners = new Set(clicks.filter(({ at }) => isWithin(at, 0)).map((one) => one.visitor))
  return ({ type, at, visitor }) =>
    type === "click" ? isWithin(at, 0) : scanners.has(visitor) && isWithin(at, BURST_MS)
}
