import { and, asc, eq, gt, inArray, lt } from "drizzle-orm"
import { currentPeriod, nextTurn } from "../core/time"
import { accounts } from "../identity/tables"
import { quotas } from "../plans/tables"
import type { Store } from "../store/store"
import { usageDays } from "./tables"

/** Days and monthly quotas are kept for so many whole years, and the current month. */
const KEPT_YEARS = 3

/** Accounts, or quotas, of one look. */
const LOOK = 200
/** Rows of one transaction. */
const BATCH = 500

/** The first month that is kept: `YYYY-MM`. */
function firstKept(): string {
  const [year, month] = currentPeriod().split("-")
  return `${Number(year) - KEPT_YEARS}-${month}`
}

/** Removes usage by day and used quotas of months long past, account by account. */
export async function purgeUsage(store: Store): Promise<void> {
  for (let after: string | undefined = ""; after !== undefined; ) {
    const { id } = accounts
    const next = store.read.select({ id }).from(accounts).where(gt(id, after))
    const ids = (await next.orderBy(asc(id)).limit(LOOK)).map((row) => row.id)
    for (const account_id of ids) while ((await purgeDays(store, account_id)) > 0);
    after = ids.at(-1)
    await nextTurn()
  }
  for (let after: string | undefined = ""; after !== undefined; ) {
    after = await purgeQuotas(store, after)
    await nextTurn()
  }
}

async function purgeDays(store: Store, account_id: string): Promise<number> {
  const { day } = usageDays
  const ours = eq(usageDays.account_id, account_id)
  const old = and(ours, lt(day, `${firstKept()}-01`))
  const rows = await store.read.select({ day }).from(usageDays).where(old).orderBy(day).limit(BATCH)
  const days = [...new Set(rows.map((row) => row.day))]
  if (days.length > 0) {
    await store.tx((tx) => tx.delete(usageDays).where(and(ours, inArray(day, days))))
  }
  return days.length
}

/** Of the subjects behind this one. Resolves with the last one, or undefined where there is no further one. */
async function purgeQuotas(store: Store, after: string): Promise<string | undefined> {
  const { subject, period } = quotas
  const next = store.read.selectDistinct({ subject }).from(quotas).where(gt(subject, after))
  const subjects = (await next.orderBy(asc(subject)).limit(LOOK)).map((row) => row.subject)
  if (subjects.length === 0) return undefined
  const old = and(inArray(subject, subjects), lt(period, firstKept()))
  const [found] = await store.read.select({ period }).from(quotas).where(old).limit(1)
  if (found) await store.tx((tx) => tx.delete(quotas).where(old))
  return subjects.at(-1)
}
