import { and, desc, eq, ne, or } from "drizzle-orm"
import { LOCAL } from "../audit-log/audit-log"
import { LIMIT_NAMES } from "../core/config-plans"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import type { AccountStatus } from "../identity/tables"
import { accounts as rows } from "../identity/tables"
import { isPlan, PLAN_NAMES } from "../plans/plans"
import type { Reader, Tx } from "../store/store"
import * as accounts from "./accounts"
import { INSTANCE_SLUG } from "./instance-project"

/** What the person who runs the instance does to accounts, whoever owns them. */
export type AccountRow = accounts.AccountRow

/** Newest first. */
export const listAll = (db: Reader): Promise<AccountRow[]> =>
  db.select().from(rows).where(ne(rows.slug, INSTANCE_SLUG)).orderBy(desc(rows.id))

/** By id, slug or name. Throws 404, and 409 where several have the name. */
export async function named(db: Reader, name: string): Promise<AccountRow> {
  const called = isUuid(name) ? eq(rows.id, name) : or(eq(rows.slug, name), eq(rows.name, name))
  const found = await db
    .select()
    .from(rows)
    .where(and(called, ne(rows.slug, INSTANCE_SLUG)))
  const exact = found.find(({ slug }) => slug === name) ?? found[0]
  if (!exact) return fail("not_found", `There is no account with the id, slug or name ${name}.`)
  if (found.length === 1 || exact.slug === name) return exact
  const details = { reason: "several", id: null }
  return fail(
    "conflict",
    `Several accounts have the name ${name}. Give the id of one of them.`,
    details,
  )
}

export interface StatusChange {
  status: AccountStatus
  /** For the audit log and for the operator's memory; callers are not told. */
  reason: string | null
}

/** Acts on the next request of every key and every person of the account. */
export async function setStatus(tx: Tx, name: string, { status, reason }: StatusChange) {
  const before = await accounts.hold(tx, (await named(tx, name)).id)
  const status_reason = status === "active" ? null : reason
  const after = await accounts.set(tx, before.id, { status, status_reason })
  const action = status === "active" ? "account.unlocked" : `account.${status}`
  await accounts.log(tx, LOCAL, before.id, action, { before, after })
  return after
}

export interface PlanChange {
  plan: string
  /** Numbers in place of the plan's; null for none, undefined for those there are. */
  limits: Record<string, number | null> | null | undefined
}

/** Throws 422 `validation_error` for a plan or limit that does not exist. */
export async function setPlan(tx: Tx, name: string, { plan, limits }: PlanChange) {
  if (!isPlan(plan))
    refuse("plan", `There is no plan ${plan}. The plans are ${PLAN_NAMES.join(", ")}.`)
  for (const [limit, value] of Object.entries(limits ?? {})) {
    const known = LIMIT_NAMES as readonly string[]
    if (!known.includes(limit))
      refuse(`limits.${limit}`, `There is no such limit. The limits are ${known.join(", ")}.`)
    const fits = value === null || (Number.isSafeInteger(value) && value >= 0)
    if (!fits)
      refuse(`limits.${limit}`, "The limit must be a whole number from 0, or null for unlimited.")
  }
  const before = await accounts.hold(tx, (await named(tx, name)).id)
  const changes = limits === undefined ? { plan } : { plan, limits }
  const after = await accounts.set(tx, before.id, changes)
  await accounts.log(tx, LOCAL, before.id, "account.plan_changed", { before, after })
  return after
}

const refuse = (path: string, message: string): never =>
  fail("validation_error", `${path}: ${message}`, {
    fields: [{ path, code: "invalid", message }],
  })
