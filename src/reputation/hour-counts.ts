import { and, type Column, eq, gt, gte, inArray, lt, sql } from "drizzle-orm"
import { millis } from "../core/time"
import type { ReputationCounts } from "../identity/account-reputation"
import { perStore } from "../store/cached"
import { adder } from "../store/statements"
import type { Reader, Select, Store, Tx } from "../store/store"
import { type Dimension, reputationHours } from "./tables"

const HOUR_MILLISECONDS = 3_600_000

/** How long hours are kept, for the history and for the usual hour. */
export const KEPT_HOURS = 30 * 24

/** On Postgres, where several nodes write at once. */
const SHARDS = 8

export const NONE: ReputationCounts = { sent: 0, delivered: 0, bounced: 0, complained: 0 }

/** Counts that are made name by name. */
export const eachCount = (make: (name: keyof ReputationCounts) => number): ReputationCounts => ({
  sent: make("sent"),
  delivered: make("delivered"),
  bounced: make("bounced"),
  complained: make("complained"),
})

export const hourOf = (epoch_ms: number): number => Math.floor(epoch_ms / HOUR_MILLISECONDS)

export const startOfHour = (hour: number): number => hour * HOUR_MILLISECONDS

/** What became of some recipients of one email. */
export interface CountedMessage {
  account_id: string
  project_id: string
  sender_domain: string | null
  tags: string[]
  template_id: string | null
  /** In which it was sent. */
  hour: number
  counts: ReputationCounts
}

type HourRow = Omit<typeof reputationHours.$inferInsert, "shard">

/**
 * Counts emails, in the transaction that settles them: one row for all of a project, domain, tag or
 * template in an hour.
 */
export async function count(tx: Tx, list: CountedMessage[]): Promise<void> {
  if (list.length === 0) return
  const known = knownNames(tx)
  const rows: HourRow[] = []
  const add = (email: CountedMessage, dimension: Dimension, name: string) => {
    const { account_id, project_id, hour, counts } = email
    rows.push({ account_id, dimension, name, hour, project_id, ...counts })
  }
  for (const email of list) {
    add(email, "project", "")
    const addKnown = (dimension: Dimension, name: string) => {
      if (known.has(email, dimension, name)) add(email, dimension, name)
    }
    const { sender_domain, tags, template_id } = email
    if (sender_domain !== null) addKnown("domain", sender_domain)
    if (tags.length > 0) for (const tag of new Set(tags)) addKnown("tag", tag)
    if (template_id !== null) addKnown("template", template_id)
  }
  await addTo(tx, rows)
  tx.afterCommit(() => known.keep(rows))
}

/** Of one account, that one node counts in one hour: a tag may be the number of an order. */
export const MOST_NAMES_AN_HOUR = 300

const MOST_ACCOUNTS = 10_000

/** The names that each account has in its latest hour. Further ones count in the total alone. */
class KnownNames {
  #accounts = new Map<string, { hour: number; names: Set<string> }>()

  /** Whether the name is counted. One that was bounced or complained about always is. */
  has({ account_id, hour, counts }: CountedMessage, dimension: Dimension, name: string): boolean {
    const known = this.#accounts.get(account_id)
    if (!known || known.hour !== hour || known.names.size < MOST_NAMES_AN_HOUR) return true
    return counts.bounced + counts.complained > 0 || known.names.has(`${dimension} ${name}`)
  }

  keep(rows: HourRow[]) {
    for (const { account_id, hour, dimension, name } of rows) {
      if (dimension === "project") continue
      const known = this.#accounts.get(account_id)
      if (known?.hour === hour) known.names.add(`${dimension} ${name}`)
      else if (!known || known.hour < hour) this.#begin(account_id, hour, `${dimension} ${name}`)
    }
  }

  #begin(account_id: string, hour: number, name: string) {
    if (this.#accounts.size >= MOST_ACCOUNTS) this.#accounts.clear()
    this.#accounts.set(account_id, { hour, names: new Set([name]) })
  }
}

const knownNames = perStore(() => new KnownNames())

export const sumOf = (list: ReputationCounts[]): ReputationCounts =>
  eachCount((name) => list.reduce((sum, one) => sum + one[name], 0))

const addTo = adder(
  reputationHours,
  ["account_id", "dimension", "name", "hour", "project_id"],
  ["sent", "delivered", "bounced", "complained"],
  SHARDS,
)

const { account_id, dimension, name, hour, project_id, shard } = reputationHours

const summed = (column: Column) => sql<number>`coalesce(sum(${column}), 0)`.mapWith(Number)

const sums = {
  sent: summed(reputationHours.sent),
  delivered: summed(reputationHours.delivered),
  bounced: summed(reputationHours.bounced),
  complained: summed(reputationHours.complained),
}

export interface CountedHour extends ReputationCounts {
  hour: number
}

/** All mail of an account, one row for each hour with mail since the given one; oldest first. */
export const hoursOf = (db: Reader, account: string, since: number): Promise<CountedHour[]> =>
  db
    .select({ hour, ...sums })
    .from(reputationHours)
    .where(and(eq(account_id, account), eq(dimension, "project"), eq(name, ""), gte(hour, since)))
    .groupBy(hour)
    .orderBy(hour)

interface NamedCounts extends ReputationCounts {
  name: string
  project_id: string
}

/** The most of one kind that an answer names. */
const MOST_NAMES = 100

interface NamesQuery {
  account_id: string
  dimension: Dimension
  since: number
  /** All projects without it. */
  project_id: string | undefined
}

/**
 * The select of the mail of each domain, tag or template: those with the most complaints and bounces first. It reads
 * each hour of each name: see `readHeavy`.
 */
export const byName = (db: Reader, asked: NamesQuery): Select<NamedCounts> =>
  db
    .select({ name, project_id, ...sums })
    .from(reputationHours)
    .where(
      and(
        eq(account_id, asked.account_id),
        eq(dimension, asked.dimension),
        gte(hour, asked.since),
        asked.project_id === undefined ? undefined : eq(project_id, asked.project_id),
      ),
    )
    .groupBy(name, project_id)
    .orderBy(sql`sum(complained) DESC, sum(bounced) DESC, sum(sent) DESC`)
    .limit(MOST_NAMES)

/** One domain, tag or template of a project. */
export interface CountedName {
  account_id: string
  project_id: string
  dimension: Dimension
  name: string
}

/** The mail of one name since the given hour. */
export async function countsOf(db: Reader, one: CountedName, since: number) {
  const [row] = await db
    .select(sums)
    .from(reputationHours)
    .where(
      and(
        eq(account_id, one.account_id),
        eq(dimension, one.dimension),
        eq(name, one.name),
        eq(project_id, one.project_id),
        gte(hour, since),
      ),
    )
  return row ?? NONE
}

/** The tags and templates of an account about which somebody complained since the given hour. */
export const complainedOf = (db: Reader, account: string, since: number) =>
  db
    .selectDistinct({ account_id, project_id, dimension, name })
    .from(reputationHours)
    .where(
      and(
        eq(account_id, account),
        gte(hour, since),
        sql`complained > 0`,
        sql`dimension IN ('tag', 'template')`,
      ),
    )
    .limit(MOST_COMPLAINED)

/** Names with complaints that one evaluation looks at. */
const MOST_COMPLAINED = 1000

/** The accounts with mail of the given hour, some at a time, by their ids. */
export async function sendersIn(db: Reader, one: number, after: string | undefined) {
  const beyond = after === undefined ? undefined : gt(account_id, after)
  const rows = await db
    .selectDistinct({ account_id })
    .from(reputationHours)
    .where(and(eq(hour, one), beyond))
    .orderBy(account_id)
    .limit(SENDERS_AT_ONCE)
  return rows.map((row) => row.account_id)
}

export const SENDERS_AT_ONCE = 200

/** Rows of one transaction. */
const PURGED_AT_ONCE = 200

/** Forgets up to 200 rows of one hour of one account that is past its time. Returns how many rows went. */
export async function purgeHours(store: Store): Promise<number> {
  const old = lt(hour, hourOf(millis()) - KEPT_HOURS)
  const rows = store.read.select({ hour, account_id }).from(reputationHours).where(old)
  const [first] = await rows.orderBy(hour).limit(1)
  if (!first) return 0
  const of_hour = and(eq(hour, first.hour), eq(account_id, first.account_id))
  const keys = store.read.select({ dimension, name, project_id, shard }).from(reputationHours)
  const some = await keys.where(of_hour).limit(PURGED_AT_ONCE)
  // By the whole key, so that each is found by it.
  const alike = Map.groupBy(some, (row) => `${row.dimension} ${row.project_id} ${row.shard}`)
  return store.tx(async (tx) => {
    let removed = 0
    for (const [one, ...more] of alike.values()) {
      if (!one) continue
      const names = [one, ...more].map((row) => row.name)
      const gone = and(
        of_hour,
        eq(dimension, one.dimension),
        eq(project_id, one.project_id),
        eq(shard, one.shard),
        inArray(name, names),
      )
      removed += (await tx.delete(reputationHours).where(gone).returning({ hour })).length
    }
    return removed
  })
}
