import { and, eq, gte, inArray, lt, type SQL, sql, sum } from "drizzle-orm"
import { accounts } from "../identity/tables"
import type { Metric } from "../plans/quotas"
import { engine } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { usageDays } from "./tables"

export type Counted = Metric | "api_requests"

export const CHANNEL_METRICS = ["email", "push", "sms", "in_app"] as const

const SHARDS = engine === "postgres" ? 8 : 1

/** Some units of one project on one day (`YYYY-MM-DD`, UTC). */
export interface Units {
  account_id: string
  project_id: string
  day: string
  metric: Counted
  value: number
}

/** Counts units, in the transaction of what they count. */
export async function add(tx: Tx, list: Units[]) {
  const shard = SHARDS === 1 ? 0 : Math.floor(Math.random() * SHARDS)
  // Always in the same order, so that no two writers wait for each other.
  for (const one of merged(list)) if (one.value !== 0) await addTo(tx, { ...one, shard })
}

function merged(list: Units[]): Units[] {
  const sums = new Map<string, Units>()
  for (const one of list) {
    const name = nameOf(one)
    sums.set(name, { ...one, value: one.value + (sums.get(name)?.value ?? 0) })
  }
  return [...sums.values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}

const nameOf = ({ account_id, project_id, day, metric }: Units) =>
  `${account_id} ${day} ${project_id} ${metric}`

export interface Range {
  account_ids: string[]
  /** All projects without it. */
  project_id?: string | undefined
  /** `YYYY-MM` */
  period: string
}

export interface Day {
  project_id: string
  day: string
  metric: string
  value: number
}

/** One row a project, day and metric. */
export async function days(db: Reader, range: Range): Promise<Day[]> {
  const { project_id, day, metric, value } = usageDays
  const rows = await db
    .select({ project_id, day, metric, value: sum(value).mapWith(Number) })
    .from(usageDays)
    .where(within(range))
    .groupBy(project_id, day, metric)
  return rows.map((row) => ({ ...row, value: row.value ?? 0 }))
}

export type Totals = Record<Counted, number>

/** What all projects of the range used together. */
export async function totals(db: Reader, range: Range): Promise<Totals> {
  const all = emptyTotals()
  for (const { metric, value } of await days(db, range)) {
    if (metric in all) all[metric as Counted] += value
  }
  return all
}

export const emptyTotals = (): Totals => ({
  email: 0,
  push: 0,
  sms: 0,
  in_app: 0,
  mau: 0,
  api_requests: 0,
})

/** The accounts whose usage one quota counts. */
export async function accountsOf(db: Reader, subject: string): Promise<string[]> {
  if (!subject.startsWith(PERSON)) return [subject]
  const owned = eq(accounts.owner_user_id, subject.slice(PERSON.length))
  const { id } = accounts
  const rows = await db
    .select({ id })
    .from(accounts)
    .where(and(owned, eq(accounts.plan, "free")))
  return rows.map((row) => row.id)
}

const PERSON = "user:"

/** The sum of what was counted for a quota, for when its own row does not know yet. */
export async function recount(db: Reader, subject: string, metric: Metric, period: string) {
  const account_ids = await accountsOf(db, subject)
  return (await totals(db, { account_ids, period }))[metric]
}

function within({ account_ids, project_id, period }: Range): SQL | undefined {
  return and(
    inArray(usageDays.account_id, account_ids),
    gte(usageDays.day, `${period}-01`),
    lt(usageDays.day, `${period}-32`),
    project_id ? eq(usageDays.project_id, project_id) : undefined,
  )
}

const { account_id, project_id, day, metric, shard, value } = usageDays

const addTo = prepared({ account_id, project_id, day, metric, shard, value }, (tx: Tx, row) =>
  tx
    .insert(usageDays)
    .values(row)
    .onConflictDoUpdate({
      target: [account_id, day, project_id, metric, shard],
      set: { value: sql`${value} + excluded.value` },
    }),
)
