import { and, eq, sql } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now, secondsFromNow } from "../core/time"
import type { Page, Window } from "../http/page"
import type { Caller } from "../identity/caller"
import { newSecret } from "../lib/signature"
import { demandRoom } from "../plans/plans"
import { bump, total } from "../store/counters"
import { held } from "../store/locks"
import type { Reader, Tx } from "../store/store"
import { newestFirst } from "../store/stretch"
import * as accounts from "../tenancy/accounts"
import * as projects from "../tenancy/projects"
import { keepMasked, sealHeaders } from "./custom-headers"
import type { Changes, NewEndpoint } from "./input"
import { heldCounts, ours, record, shown, type Webhook, type WebhookRow } from "./record"
import { secretContext } from "./secrets"
import { type WebhookStatus, webhooks } from "./tables"
import { type WebhookWarning, warningsOf } from "./warnings"

const OVERLAP_SECONDS = 86_400
const HINT_CHARACTERS = 4

/** Of every project; tenancy/resources.ts reads it too. */
const COUNTER = "webhooks"

/** How an endpoint is written: what seals its secrets, and whether its host had an address. */
export interface EndpointWriting {
  secrets: Secrets
  /** Undefined where the URL stays, and nobody looked it up. */
  resolved: boolean | undefined
}

/** The secret leaves here, once. Throws 403 `plan_limit_exceeded`. */
export async function create(
  tx: Tx,
  { secrets, resolved }: EndpointWriting,
  caller: Caller,
  input: NewEndpoint,
) {
  const { account_id, project_id } = caller
  await demandPlace(tx, caller)
  const { secret = newSecret(), ...wanted } = input
  const id = newId()
  const row: WebhookRow = {
    id,
    account_id,
    project_id,
    ...wanted,
    ...sealHeaders(secrets, id, wanted.headers),
    ...sealedSecret(secrets, id, secret),
    previous_secret: null,
    previous_secret_expires_at: null,
    status: "active",
    disabled_reason: null,
    disabled_at: null,
    consecutive_failures: 0,
    last_triggered_at: null,
    last_success_at: null,
    last_failure_at: null,
    unresolved_at: resolved === false ? now() : null,
    next_slot_at: null,
    created_at: now(),
    updated_at: now(),
  }
  await tx.insert(webhooks).values(row)
  await bump(tx, project_id, COUNTER, 1)
  const made = record(row, 0)
  await log(tx, caller, id, "webhook.created", { after: made })
  return { ...made, secret, warnings: warningsOf(row) }
}

/** The limit is the account's, over all of its projects; two at once must not pass it together. */
async function demandPlace(tx: Tx, { account_id, limits, plan }: Caller) {
  const limit = limits.webhooks
  if (limit === null) return
  await accounts.hold(tx, account_id)
  demandRoom({ resource: "webhooks", used: await countIn(tx, account_id), limit, plan })
}

async function countIn(db: Reader, account_id: string): Promise<number> {
  let used = 0
  for (const { id } of await projects.active(db, account_id)) used += await total(db, id, COUNTER)
  return used
}

const sealedSecret = (secrets: Secrets, id: string, secret: string) => ({
  secret: secrets.seal(secret, secretContext(id)),
  secret_hint: `whsec_…${secret.replace(/=+$/, "").slice(-HINT_CHARACTERS)}`,
})

/** Newest first. */
export async function list(
  db: Reader,
  project_id: string,
  status: WebhookStatus | undefined,
  window: Window,
): Promise<Page<Webhook> & { warnings: Map<string, WebhookWarning[]> }> {
  const wanted = and(eq(webhooks.project_id, project_id), status && eq(webhooks.status, status))
  const { where, order } = newestFirst(webhooks.id, window)
  const rows = await db
    .select()
    .from(webhooks)
    .where(and(wanted, where))
    .orderBy(order)
    .limit(window.limit)
    .offset(window.offset)
  const ids = rows.map(({ id }) => id)
  const counts = await heldCounts(db, ids)
  return {
    rows: rows.map((row) => record(row, counts.get(row.id) ?? 0)),
    warnings: new Map(rows.map((row) => [row.id, warningsOf(row)])),
    total: async () => {
      if (!status) return total(db, project_id, COUNTER)
      const [row] = await db.select({ n: sql<number>`count(*)` }).from(webhooks).where(wanted)
      return Number(row?.n ?? 0)
    },
  }
}

/** Looks within the project only. Throws 404 `webhook_not_found`. */
export async function find(db: Reader, project_id: string, id: string): Promise<WebhookRow> {
  const rows = isUuid(id) ? await db.select().from(webhooks).where(ours(project_id, id)) : []
  return rows[0] ?? gone()
}

/** As `find`, and nobody else changes the endpoint before the transaction ends. */
export async function hold(tx: Tx, project_id: string, id: string): Promise<WebhookRow> {
  const query = () => held(tx.select().from(webhooks).where(ours(project_id, id)))
  const [row] = isUuid(id) ? await query() : []
  return row ?? gone()
}

const gone = () => fail("webhook_not_found", "There is no such webhook.")

export const get = async (db: Reader, project_id: string, id: string): Promise<Webhook> =>
  shown(db, await find(db, project_id, id))

/** As `get`, with what is odd about the endpoint. */
export async function getWarned(db: Reader, project_id: string, id: string) {
  const row = await find(db, project_id, id)
  return { ...(await shown(db, row)), warnings: warningsOf(row) }
}

/**
 * Changes what an endpoint is; `enabled` and `status` are for others. Nothing to change changes
 * nothing. Throws 422 for a masked header that has no stored value.
 */
export async function change(
  tx: Tx,
  { secrets, resolved }: EndpointWriting,
  caller: Caller,
  before: WebhookRow,
  { enabled: _, status: __, ...wanted }: Changes,
): Promise<WebhookRow> {
  if (Object.keys(wanted).length === 0) return before
  const { headers } = wanted
  const at = now()
  const changes = {
    ...wanted,
    ...(headers && sealHeaders(secrets, before.id, keepMasked(secrets, before, headers))),
    ...(resolved !== undefined && { unresolved_at: resolved ? null : at }),
    updated_at: at,
  }
  await tx.update(webhooks).set(changes).where(ours(before.project_id, before.id))
  const after = { ...before, ...changes }
  const told = { before: record(before, 0), after: record(after, 0) }
  await log(tx, caller, before.id, "webhook.updated", told)
  return after
}

/** The row alone; what is still open of its deliveries is ended elsewhere. */
export async function remove(tx: Tx, caller: Caller, row: WebhookRow): Promise<void> {
  const { project_id, id } = row
  await tx.delete(webhooks).where(ours(project_id, id))
  await bump(tx, project_id, COUNTER, -1)
  await log(tx, caller, id, "webhook.deleted", { before: record(row, 0) })
}

/**
 * A new secret, told once. Receivers may go on with the one before for 24 hours, during which every
 * delivery carries two signatures; with `expire_previous_now` it counts no more at once.
 */
export async function rotate(
  tx: Tx,
  secrets: Secrets,
  caller: Caller,
  id: string,
  expire_previous_now: boolean,
) {
  const before = await hold(tx, caller.project_id, id)
  const secret = newSecret()
  const until = expire_previous_now ? null : secondsFromNow(OVERLAP_SECONDS)
  const changes = {
    ...sealedSecret(secrets, id, secret),
    previous_secret: until === null ? null : before.secret,
    previous_secret_expires_at: until,
    updated_at: now(),
  }
  await tx.update(webhooks).set(changes).where(ours(caller.project_id, id))
  const after = { secret_hint: changes.secret_hint, previous_secret_expires_at: until }
  await log(tx, caller, id, "webhook.secret_rotated", { after })
  return { secret, previous_secret_expires_at: until }
}

type Change = Pick<audit.NewEntry, "before" | "after">

/** Values of custom headers may be credentials of the receiver: only their names are told. */
export const log = (tx: Tx, caller: Caller, id: string, action: string, change: Change) =>
  audit.record(tx, {
    account_id: caller.account_id,
    project_id: caller.project_id,
    actor: caller.actor,
    ip: caller.ip,
    action,
    target: { type: "webhook", id },
    ...Object.fromEntries(Object.entries(change).map(([name, one]) => [name, veiled(one)])),
  })

function veiled(value: unknown): unknown {
  const { headers, ...rest } = value as { headers?: Record<string, string> }
  return headers === undefined ? value : { ...rest, header_names: Object.keys(headers) }
}
