import type { Static } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now, secondsFromNow } from "../core/time"
import type { Page } from "../http/page"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { fieldsOf } from "../lib/record-fields"
import { newSecret } from "../lib/signature"
import { requireRoom } from "../plans/plans"
import { total } from "../store/counters"
import type { ListWindow } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as accounts from "../tenancy/accounts"
import * as projects from "../tenancy/projects"
import { totalsOf, totalsOfOne } from "./endpoint-counts"
import type { EndpointChanges, NewEndpoint } from "./endpoint-input"
import { keepMasked, sealHeaders, secretContext } from "./receiver"
import * as schemas from "./schemas"
import { type WebhookRow, type WebhookStatus, webhooks } from "./tables"

const OVERLAP_SECONDS = 86_400
const HINT_CHARACTERS = 4

/** Of each project. tenancy/resources.ts reads it too. */
const COUNTER = "webhooks"

/** An endpoint that receives events. Values of its headers may be credentials: the audit log has only their names. */
const webhook = noun({
  name: "webhook",
  table: webhooks,
  missing: () => fail("webhook_not_found", "There is no such webhook."),
  counter: COUNTER,
  audited: (row: WebhookRow) => {
    const { headers, ...rest } = toResponse(row, 0)
    return { ...rest, header_names: Object.keys(headers) }
  },
})

export const { lookup, find, forUpdate, remove, log } = webhook

export interface EndpointContext {
  secrets: Secrets
  /** Whether the host of the URL had an address. Undefined where the URL stays. */
  resolved: boolean | undefined
}

/** The secret leaves here, once. Throws 403 `plan_limit_exceeded`. */
export async function create(
  tx: Tx,
  { secrets, resolved }: EndpointContext,
  caller: Caller,
  input: NewEndpoint,
) {
  await requireQuota(tx, caller)
  const { secret = newSecret(), ...fields } = input
  const id = newId()
  const row = await webhook.insert(tx, caller, {
    id,
    ...fields,
    ...sealHeaders(secrets, id, fields.headers),
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
  })
  return { ...warned(row, 0), secret }
}

/** The limit is the account's, over all of its projects. Two requests at once must not pass it together. */
async function requireQuota(tx: Tx, { account_id, limits, plan }: Caller) {
  const limit = limits.webhooks
  if (limit === null) return
  await accounts.findForUpdate(tx, account_id)
  let used = 0
  for (const { id } of await projects.active(tx, account_id)) used += await total(tx, id, COUNTER)
  requireRoom({ resource: "webhooks", used, limit, plan })
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
  window: ListWindow,
): Promise<Page<WarnedWebhook>> {
  const filter = status && eq(webhooks.status, status)
  const found = webhook.list(db, project_id, { filter })
  const { rows, end } = await found.list(window)
  const totals = await totalsOf(
    db,
    rows.map(({ id }) => id),
  )
  return {
    rows: rows.map((row) => warned(row, totals.get(row.id)?.held ?? 0)),
    end,
    total: found.total,
  }
}

/** Without its warnings. Throws 404. */
export const get = async (db: Reader, project_id: string, id: string): Promise<WebhookRecord> =>
  fieldsOf(schemas.Webhook, await getWarned(db, project_id, id))

export async function getWarned(db: Reader, project_id: string, id: string) {
  const row = await find(db, project_id, id)
  return warned(row, (await totalsOfOne(db, row.id)).held)
}

type WarnedWebhook = ReturnType<typeof warned>

const warned = (row: WebhookRow, held_count: number) => ({
  ...toResponse(row, held_count),
  warnings: warningsOf(row),
})

export type WebhookRecord = Static<typeof schemas.Webhook>

/** The Webhook record of the contract: all but its secrets. */
const toResponse = (row: WebhookRow, held_count: number): WebhookRecord =>
  fieldsOf(schemas.Webhook, { ...row, enabled: row.status === "active", held_count })

export type WebhookWarning = Static<typeof schemas.WebhookWarning>

/** Empty where the host had an address when it was last looked up. */
function warningsOf({ url, unresolved_at, last_success_at }: WebhookRow): WebhookWarning[] {
  if (unresolved_at === null) return []
  if (last_success_at !== null && last_success_at >= unresolved_at) return []
  const message =
    `The host ${new URL(url).hostname} does not resolve. Deliveries fail with \`dns\` until it ` +
    "resolves. Check the name and its DNS records."
  return [{ code: "host_not_resolved", message }]
}

/**
 * Changes the fields of an endpoint. `enabled` and `status` are not among them. Without any field it
 * writes nothing. Throws 422 for a masked header that has no stored value.
 */
export async function change(
  tx: Tx,
  { secrets, resolved }: EndpointContext,
  caller: Caller,
  before: WebhookRow,
  { enabled: _, status: __, ...fields }: EndpointChanges,
): Promise<WebhookRow> {
  if (Object.keys(fields).length === 0) return before
  const { headers } = fields
  const changes = {
    ...fields,
    ...(headers && sealHeaders(secrets, before.id, keepMasked(secrets, before, headers))),
    ...(resolved !== undefined && { unresolved_at: resolved ? null : now() }),
  }
  return webhook.update(tx, caller, before, changes)
}

/**
 * Returns a new secret, once. Receivers may go on with the previous one for 24 hours, during which
 * every delivery carries two signatures. With `expire_previous_now` it ends at once.
 */
export async function rotate(
  tx: Tx,
  secrets: Secrets,
  caller: Caller,
  id: string,
  expire_previous_now: boolean,
) {
  const before = await forUpdate(tx, caller.project_id, id)
  const secret = newSecret()
  const until = expire_previous_now ? null : secondsFromNow(OVERLAP_SECONDS)
  const changes = {
    ...sealedSecret(secrets, id, secret),
    previous_secret: until === null ? null : before.secret,
    previous_secret_expires_at: until,
    updated_at: now(),
  }
  await tx.update(webhooks).set(changes).where(eq(webhooks.id, before.id))
  const after = { secret_hint: changes.secret_hint, previous_secret_expires_at: until }
  await log(tx, caller, before, "secret_rotated", { after })
  return { secret, previous_secret_expires_at: until }
}
