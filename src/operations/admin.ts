import { settings } from "../core/config"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { revokeAll, type Sessions } from "../identity/sessions"
import type { AccountStatus } from "../identity/tables"
import * as mailbox from "../mailbox/mailbox"
import { openRaw } from "../mailbox/sealed"
import { ownAccess, ownCallback } from "../providers/ses/own"
import type { Store } from "../store/store"
import { usageOfAccount } from "../tenancy/account-usage"
import { setupRecord } from "../tenancy/establish"
import { findInstance } from "../tenancy/instance-project"
import * as operate from "../tenancy/operator"
import * as people from "../tenancy/operator-users"
import { accountRecord } from "../tenancy/record"
import type { Setup } from "../tenancy/setup-token"
import { demandOwner } from "./local-owner"

export interface AdminParts {
  store: Store
  secrets: Secrets
  sessions: Sessions
  setup: Setup
  base_url: () => string
}

/** What somebody at the machine itself may order, without any credential. */
export type Order =
  | ({ operation: "bootstrap" } & people.Bootstrap)
  | { operation: "reset_owner"; email: string; password: string; keep_mfa: boolean }
  | { operation: "set_status"; account: string; status: AccountStatus; reason: string | null }
  | ({ operation: "set_plan"; account: string } & operate.PlanChange)
  | { operation: "accounts" }
  | { operation: "users" }
  | { operation: "lock_user" | "unlock_user"; email: string }
  | { operation: "set_operator"; email: string; operator: boolean }
  | ({ operation: "system_mails"; limit: number } & mailbox.MailFilter)
  | { operation: "system_mail"; id: string }
  | { operation: "ses_callback" }

/** Carries out one order. Throws ApiError as a route would. */
export async function administer(parts: AdminParts, order: Order): Promise<object> {
  const { store } = parts
  switch (order.operation) {
    case "bootstrap":
      return bootstrap(parts, order)
    case "reset_owner":
      return people.resetOwner(parts, order)
    case "set_status":
      return shown(store, await store.tx((tx) => operate.setStatus(tx, order.account, order)))
    case "set_plan":
      return shown(store, await store.tx((tx) => operate.setPlan(tx, order.account, order)))
    case "accounts":
      return Promise.all((await operate.listAll(store.read)).map((row) => shown(store, row)))
    case "users":
      return people.listUsers(parts)
    case "lock_user":
      return people.lockUser(parts, order.email)
    case "unlock_user":
      return people.unlockUser(parts, order.email)
    case "set_operator":
      return people.setOperator(parts, order.email, order.operator)
    case "system_mails":
      return systemMails(store, order)
    case "system_mail":
      return systemMail(parts, order.id)
    case "ses_callback":
      return sesCallback(parts)
  }
}

/** Mail of the instance itself that the embedded mailbox caught; no route ever shows it. */
async function systemMails(
  { read }: Store,
  { to, from, search, since, limit }: mailbox.MailFilter & { limit: number },
) {
  const own = await findInstance(read)
  const filter = { to, from, search, since }
  return own ? (await mailbox.list(read, own.project_id, filter, { limit })).rows : []
}

async function systemMail({ store: { read }, secrets }: AdminParts, id: string) {
  const own = await findInstance(read)
  const mail = await mailbox.find(read, own?.project_id ?? "", id)
  const raw = openRaw(secrets, mail)
  const { from_address: from, to_address: to, subject, email_id, created_at } = mail
  return { id, email_id, from, to, subject, created_at, raw: raw.toString("base64") }
}

/** Whoever knows the address may speak to it, so no route and no log tells it. */
function sesCallback({ secrets, base_url }: AdminParts) {
  if (!ownAccess(settings())) fail("conflict", "The setting delivery.provider is not ses.")
  if (base_url() === "")
    fail("conflict", "The setting base_url is missing, so the address is not known. Set base_url.")
  return { callback_url: ownCallback(secrets, base_url()) }
}

/** The new owner signs in like everybody: what is shown here is no session. */
async function bootstrap(parts: AdminParts, order: people.Bootstrap) {
  const { email, password, name, account_name, project_name } = order
  const wanted = { email, password, name, account_name, project_name }
  demandOwner(wanted)
  const made = await people.bootstrap(parts, wanted)
  const { session, ...rest } = await setupRecord(parts.store.read, made)
  await parts.store.tx((tx) => revokeAll(tx, session.user.id))
  return { user: session.user, ...rest }
}

const shown = async ({ read }: Store, row: operate.AccountRow) => ({
  ...accountRecord(row, await usageOfAccount(read, row)),
  status_reason: row.status_reason,
  deleting_at: row.deleting_at,
})
