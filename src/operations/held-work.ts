import { isIP } from "node:net"
import { and, asc, count, eq, gt, inArray, like, lt, or, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { log } from "../core/log"
import { now, secondsFromNow } from "../core/time"
import { changeUnclaimed } from "../jobs/claims"
import { type AnyWorkRows, underHold, unholdThese } from "../jobs/holds"
import { DROPPED, jobRows } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { wakeUpOf } from "../jobs/wake-ups"
import { READY, RESTORE_HOLD } from "../jobs/work-item"
import { domainOf, wireDomain } from "../lib/address"
import { loadAll } from "../messages/change"
import { messageRows } from "../messages/pipeline"
import { CANCELLED, stopAll } from "../messages/settle"
import { messages } from "../messages/tables"
import { readOfAll } from "../store/heavy-reads"
import type { Reader, Store } from "../store/store"
import { deliveryRows } from "../webhooks/delivery-rows"
import { dropHeld } from "../webhooks/held"
import { deliveries, webhooks } from "../webhooks/tables"

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
  after?: HeldPlace | undefined
}

/** Behind this row of this table. */
export interface HeldPlace {
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
  next: HeldPlace | null
}

/** Rows of one order, so that its caller sees how far it is and may end it. */
const MOST_ROWS = 2000

/** Rows of one transaction. */
const AT_ONCE = 100

interface HeldPart {
  name: keyof HeldCounts
  rows: AnyWorkRows
  which: SQL | undefined
  /** Of messages: one of the recipients has an address there. */
  domain?: string | undefined
}

/**
 * Counts, resumes or drops what a filter names of the work that a restored copy holds: all of it when it
 * counts, otherwise up to 2,000 rows behind `after`. A dropped message ends as one that its sender
 * cancelled, with its event; a delivery ends `exhausted`, and a job is given up. Throws 422 for a kind or
 * domain that cannot be.
 */
export async function changeHeld(store: Store, order: HeldOrder): Promise<HeldAnswer> {
  const parts = await partsOf(store.read, order.filter)
  if (order.action === "count") return { counts: await countsOf(store.read, parts), next: null }
  const counts: HeldCounts = { messages: 0, webhook_deliveries: 0, jobs: 0 }
  let left = MOST_ROWS
  const first = parts.findIndex(({ name }) => name === order.after?.table)
  for (const [at, part] of parts.entries()) {
    if (at < first) continue
    let after = at === first ? (order.after?.id ?? "") : ""
    while (left > 0) {
      const { ids, last, looked_at } = await heldPage(store.read, part, after)
      if (last === undefined) break
      if (ids.length > 0) counts[part.name] += await ENDS[order.action](store, part, ids)
      after = last
      left -= looked_at
    }
    if (left <= 0) return { counts, next: { table: part.name, id: after } }
  }
  log.info("held work was changed", { action: order.action, filter: order.filter })
  return { counts, next: null }
}

type Change = (store: Store, part: HeldPart, ids: string[]) => Promise<number>

const ENDS: Record<"resume" | "purge", Change> = {
  resume: (store, { rows }, ids) => unholdThese(store, rows, RESTORE_HOLD, ids),
  purge: (store, { name }, ids) => DROPS[name](store, ids),
}

const DROPS: Record<keyof HeldCounts, (store: Store, ids: string[]) => Promise<number>> = {
  messages: dropMessages,
  webhook_deliveries: (store, ids) => store.tx((tx) => dropHeld(tx, RESTORE_HOLD, ids)),
  jobs: dropJobs,
}

interface HeldPage {
  ids: string[]
  /** The next page begins behind it. Undefined where no row was left. */
  last: string | undefined
  looked_at: number
}

async function heldPage(db: Reader, part: HeldPart, after: string): Promise<HeldPage> {
  const { rows, which, domain } = part
  const { id } = rows.table
  const held = and(underHold(rows, RESTORE_HOLD), which, gt(id, after))
  const some = await readOfAll(db, (reader) =>
    reader.select({ id }).from(rows.table).where(held).orderBy(asc(id)).limit(AT_ONCE),
  )
  const all = some.map((row) => row.id)
  const ids = domain === undefined ? all : await idsTo(db, all, domain)
  return { ids, last: all.at(-1), looked_at: all.length }
}

/** Which of these messages go to the domain. The recipients are JSON, which no query looks into. */
async function idsTo(db: Reader, ids: string[], domain: string): Promise<string[]> {
  const { id, recipient, recipients } = messages
  const rows = await db.select({ id, recipient, recipients }).from(messages).where(inArray(id, ids))
  const found = rows.filter((row) =>
    [row.recipient, ...row.recipients.map(({ email }) => email)].some(
      (address) => domainOf(address) === domain,
    ),
  )
  return found.map((row) => row.id)
}

async function countsOf(db: Reader, parts: HeldPart[]): Promise<HeldCounts> {
  const counts: HeldCounts = { messages: 0, webhook_deliveries: 0, jobs: 0 }
  for (const part of parts) counts[part.name] = await countOf(db, part)
  return counts
}

async function countOf(db: Reader, part: HeldPart): Promise<number> {
  const { rows, which, domain } = part
  if (domain === undefined) {
    const all = and(underHold(rows, RESTORE_HOLD), which)
    const [row] = await readOfAll(db, (reader) =>
      reader.select({ n: count() }).from(rows.table).where(all),
    )
    return Number(row?.n ?? 0)
  }
  let found = 0
  for (let after: string | undefined = ""; after !== undefined; ) {
    const { ids, last }: HeldPage = await heldPage(db, part, after)
    found += ids.length
    after = last
  }
  return found
}

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

const CHANNELS = ["email", "push", "sms", "in_app"]
const HOOKS = "webhook"
const JOB = "job"
/** Names of jobs have a point in them. */
const JOB_NAME = /^[a-z_-]+(\.[a-z_-]+)+$/

const NEVER = sql`1 = 0`

async function partsOf(db: Reader, filter: HeldFilter): Promise<HeldPart[]> {
  const { kind } = filter
  const is_channel = kind !== undefined && CHANNELS.includes(kind)
  const is_job = kind === JOB || (kind !== undefined && JOB_NAME.test(kind))
  if (kind !== undefined && !is_channel && !is_job && kind !== HOOKS) throw unknownKind(kind)
  if (filter.project !== undefined && !isUuid(filter.project)) {
    fail("validation_error", `project: "${filter.project}" is not the id of a project.`)
  }
  const domain = filter.domain === undefined ? undefined : demandDomain(filter.domain)
  const of_channel = is_channel ? eq(messages.channel, kind as "email") : undefined
  const of_kind = kind === undefined || kind === JOB ? undefined : eq(jobs.name, kind)
  const all: HeldPart[] = [
    {
      name: "messages",
      rows: messageRows,
      which: and(of_channel, within(messageRows, filter)),
      domain,
    },
    {
      name: "webhook_deliveries",
      rows: deliveryRows,
      which: and(
        within(deliveryRows, filter),
        domain === undefined ? undefined : await isForHost(db, domain),
      ),
    },
    {
      name: "jobs",
      rows: jobRows,
      which: and(of_kind, within(jobRows, filter), domain === undefined ? undefined : NEVER),
    },
  ]
  if (kind === undefined) return all
  const name = is_channel ? "messages" : is_job ? "jobs" : "webhook_deliveries"
  return all.filter((part) => part.name === name)
}

const within = ({ table }: AnyWorkRows, { project, older_than }: HeldFilter) =>
  and(
    project === undefined ? undefined : eq(table.project_id, project),
    older_than === undefined ? undefined : lt(table.created_at, secondsFromNow(-older_than)),
  )

async function isForHost(db: Reader, domain: string): Promise<SQL> {
  const { id, url } = webhooks
  // Addresses are kept as they were given: the host may be in capitals, encoded, or in another script.
  const may_be = or(
    like(sql`lower(${url})`, `%${domain}%`),
    sql`${url} LIKE '%!%%' ESCAPE '!'`,
    sql`octet_length(${url}) <> length(${url})`,
  )
  // An IP address has many spellings.
  const which = isIP(unbracketed(domain)) === 0 ? may_be : undefined
  const rows = await readOfAll(db, (reader) =>
    reader.select({ id, url }).from(webhooks).where(which),
  )
  const ids = rows.flatMap((row) => (hostOf(row.url) === domain ? [row.id] : []))
  return ids.length === 0 ? NEVER : inArray(deliveries.webhook_id, ids)
}

const hostOf = (url: string) => (URL.canParse(url) ? bare(new URL(url).hostname) : "")

/** The dot at the end of an absolute name makes no other name of it. */
const bare = (name: string) => name.replace(/\.$/, "")

/** A domain, or whatever else may be the host of an endpoint: `localhost`, or an IP address. No pattern of names. */
function demandDomain(text: string): string {
  const host = isIP(text) === 6 ? `[${text}]` : text
  const found = wireDomain(bare(text)) ?? (HOST.test(host) ? hostOf(`http://${host}`) : "")
  if (found !== "") return found
  return fail("validation_error", `domain: "${text}" is neither a domain name nor an IP address.`)
}

const HOST = /^(\[[0-9a-f:.]+\]|[^\s/?#@:*\\[\]]+)$/i

const unbracketed = (host: string) => host.replace(/^\[|\]$/g, "")

function unknownKind(kind: string): never {
  const known = [...CHANNELS, HOOKS, JOB].join(", ")
  return fail("validation_error", `kind: "${kind}" is none of ${known}, or a kind of jobs.`)
}
