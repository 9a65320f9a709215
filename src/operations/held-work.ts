import { isIP } from "node:net"
import { and, asc, eq, gt, inArray, lt, type SQL, sql } from "drizzle-orm"
import type { SelectedFields } from "drizzle-orm/sqlite-core"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { log } from "../core/log"
import { now, secondsFromNow } from "../core/time"
import { changeUnclaimed } from "../jobs/claims"
import { type AnyWorkRows, underHold, unholdThese } from "../jobs/holds"
import { DROPPED, jobRows } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { READY, RESTORE_HOLD } from "../jobs/work-item"
import { wakeUpOf } from "../jobs/work-rows"
import { domainOf, wireDomain } from "../lib/address"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { loadAll } from "../messages/change"
import { messageRows } from "../messages/pipeline"
import { CANCELLED, stopAll } from "../messages/settle"
import { addressOf } from "../messages/status-changes"
import { messages } from "../messages/tables"
import { readOfAll } from "../store/heavy-reads"
import type { Reader, Store } from "../store/store"
import { deliveryRows } from "../webhooks/delivery-rows"
import { exhaust } from "../webhooks/held"
import { deliveries } from "../webhooks/tables"

/** Which part of `held_after_restore`; a field that is missing excludes nothing. */
export interface HeldFilter {
  /** A channel, `webhook`, `job`, or the name of a kind of jobs. */
  kind?: string
  /** Its id. */
  project?: string
  /** Seconds since it was accepted. */
  older_than?: number
  /** Of any recipient, also of a copy, or the host of the endpoint's address. Jobs have none. */
  domain?: string
}

export interface HeldOrder {
  action: "count" | "resume" | "purge"
  filter: HeldFilter
  /** Where the order before this one ended. */
  after?: HeldPosition | undefined
}

/** Behind this row of this table. */
interface HeldPosition {
  table: string
  id: string
}

/** What was counted, resumed or dropped: rows by table. */
export interface HeldCounts {
  messages: number
  webhook_deliveries: number
  jobs: number
}

export interface HeldAnswer {
  counts: HeldCounts
  /** Where the next order goes on; null: this was all of it. */
  next: HeldPosition | null
}

/** Rows of one order that changes them, so that its caller sees how far it is and may end it. */
const MOST_CHANGED = 2000

/** Rows of one read, and of one transaction. */
const COUNTED_AT_ONCE = 2000
const CHANGED_AT_ONCE = 100

/**
 * Counts, resumes or drops what a filter names of the work that a restored copy holds: all of it when it
 * counts, otherwise up to 2,000 rows behind `after`. It walks by id, some rows at a time. A dropped message
 * ends as one that its sender cancelled, with its event; a delivery ends `exhausted`, and a job is given up.
 * Throws 422 for a kind or domain that cannot be.
 */
export async function changeHeld(store: Store, order: HeldOrder): Promise<HeldAnswer> {
  const { action, filter, after } = order
  const parts = partsOf(filter)
  const domain = filter.domain === undefined ? undefined : requireDomain(filter.domain)
  const counts: HeldCounts = { messages: 0, webhook_deliveries: 0, jobs: 0 }
  const is_count = action === "count"
  const change = ({ rows, drop }: HeldPart, ids: string[]) => {
    if (is_count) return ids.length
    if (action === "purge") return drop(store, ids)
    return store.tx((tx) => unholdThese(tx, rows, RESTORE_HOLD, ids))
  }
  const at_once = is_count ? COUNTED_AT_ONCE : CHANGED_AT_ONCE
  let left = is_count ? Number.POSITIVE_INFINITY : MOST_CHANGED
  const first = parts.findIndex(({ name }) => name === after?.table)
  for (const part of parts.slice(Math.max(0, first))) {
    let last = part.name === after?.table ? after.id : ""
    while (left > 0) {
      const page = await heldPage(store.read, part, domain, { after: last, most: at_once })
      if (page.last === undefined) break
      if (page.ids.length > 0) counts[part.name] += await change(part, page.ids)
      last = page.last
      left -= page.looked_at
    }
    if (left <= 0) return { counts, next: { table: part.name, id: last } }
  }
  if (!is_count) log.info("held work was changed", { action, filter })
  return { counts, next: null }
}

interface HeldPart {
  name: keyof HeldCounts
  rows: AnyWorkRows
  which: SQL | undefined
  /** What of a row names domains. No query looks into it: it is JSON, or a host as its owner wrote it. */
  named: SelectedFields
  drop: (store: Store, ids: string[]) => Promise<number>
}

async function heldPage(
  db: Reader,
  { rows, which, named }: HeldPart,
  domain: string | undefined,
  { after, most }: { after: string; most: number },
) {
  const { id } = rows.table
  const held = and(underHold(rows, RESTORE_HOLD), which, gt(id, after))
  const columns = domain === undefined ? { id } : { id, ...named }
  const found = await readOfAll<{ id: string } & Named>(db, (reader) =>
    reader.select(columns).from(rows.table).where(held).orderBy(asc(id)).limit(most),
  )
  const ours = found.filter((row) => domain === undefined || domainsOf(row).includes(domain))
  return { ids: ours.map((row) => row.id), last: found.at(-1)?.id, looked_at: found.length }
}

type Named = Partial<Pick<typeof messages.$inferSelect, "address" | "recipients">> & {
  /** Null where the endpoint is gone. */
  url?: string | null
}

const domainsOf = ({ address = "", recipients = [], url }: Named): string[] =>
  url === undefined ? [address, ...recipients.map(addressOf)].map(domainOf) : [hostOf(url ?? "")]

/** As its sender would. One that ended meanwhile, or is claimed, is left alone. */
function dropMessages(store: Store, ids: string[]): Promise<number> {
  return changeUnclaimed(store, messageRows, ids, async (tx, unclaimed) => {
    const { id } = messages
    const held = and(inArray(id, unclaimed), underHold(messageRows, RESTORE_HOLD))
    const still = (await tx.select({ id }).from(messages).where(held)).map((row) => row.id)
    const found = await loadAll(tx, still)
    const text = "An operator dropped the message after a restore."
    await stopAll(tx, [...found.values()], { status: CANCELLED, text })
    return found.size
  })
}

/** Its last word is written by the queue, which knows what each kind has to say. */
async function dropJobs(store: Store, ids: string[]): Promise<number> {
  return store.tx(async (tx) => {
    const rows = await tx
      .update(jobs)
      .set({ state: READY, owner: null, run_at: now(), last_error: DROPPED })
      .where(and(inArray(jobs.id, ids), underHold(jobRows, RESTORE_HOLD)))
      .returning({ id: jobs.id })
    tx.afterCommit(wakeUpOf(tx, jobRows.name).wakeUp)
    return rows.length
  })
}

const dropDeliveries = (store: Store, ids: string[]): Promise<number> =>
  store.tx((tx) =>
    exhaust(tx, and(inArray(deliveries.id, ids), underHold(deliveryRows, RESTORE_HOLD))),
  )

const HOOKS = "webhook"
const JOB = "job"
/** Names of jobs have a point in them. */
const JOB_NAME = /^[a-z_-]+(\.[a-z_-]+)+$/

/** The tables in question, each with what the filter says of its rows. */
function partsOf({ kind, project, older_than, domain }: HeldFilter): HeldPart[] {
  const channel = AUDIENCE_CHANNELS.find((name) => name === kind)
  const job_name = kind !== undefined && JOB_NAME.test(kind) ? kind : undefined
  const is_any = kind === undefined
  if (!(is_any || channel || job_name || kind === HOOKS || kind === JOB)) {
    const known = [...AUDIENCE_CHANNELS, HOOKS, JOB].join(", ")
    fail("validation_error", `kind: "${kind}" is none of ${known}, or a kind of jobs.`)
  }
  if (project !== undefined && !isUuid(project)) {
    fail("validation_error", `project: "${project}" is not the id of a project.`)
  }
  const before = older_than === undefined ? undefined : secondsFromNow(-older_than)
  const parts: HeldPart[] = []
  const add = ({ rows, which, ...part }: HeldPart) => {
    const { project_id, created_at } = rows.table
    const of_project = project === undefined ? undefined : eq(project_id, project)
    const is_old = before === undefined ? undefined : lt(created_at, before)
    parts.push({ ...part, rows, which: and(which, of_project, is_old) })
  }
  if (is_any || channel) {
    const { address, recipients } = messages
    const which = channel && eq(messages.channel, channel)
    const named = { address, recipients }
    add({ name: "messages", rows: messageRows, which, named, drop: dropMessages })
  }
  if (is_any || kind === HOOKS) {
    const named = { url: ENDPOINT_URL }
    const which = undefined
    add({ name: "webhook_deliveries", rows: deliveryRows, which, named, drop: dropDeliveries })
  }
  if (domain === undefined && (is_any || kind === JOB || job_name)) {
    const which = job_name === undefined ? undefined : eq(jobs.name, job_name)
    add({ name: "jobs", rows: jobRows, which, named: {}, drop: dropJobs })
  }
  return parts
}

const ENDPOINT_URL = sql<string | null>`(select url from webhooks where webhooks.id = webhook_id)`

/** Addresses are kept as they were given: the host may be in capitals, encoded, or in another script. */
const hostOf = (url: string) => (URL.canParse(url) ? bare(new URL(url).hostname) : "")

/** The dot at the end of an absolute name makes no other name of it. */
const bare = (name: string) => name.replace(/\.$/, "")

/** A domain, or whatever else may be the host of an endpoint: `localhost`, or an IP address. No pattern of names. */
function requireDomain(text: string): string {
  const host = isIP(text) === 6 ? `[${text}]` : text
  const found = wireDomain(bare(text)) ?? (HOST.test(host) ? hostOf(`http://${host}`) : "")
  if (found !== "") return found
  return fail("validation_error", `domain: "${text}" is neither a domain name nor an IP address.`)
}

const HOST = /^(\[[0-9a-f:.]+\]|[^\s/?#@:*\\[\]]+)$/i
