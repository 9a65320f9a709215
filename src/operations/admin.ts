import { rmSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { Type as t } from "@sinclair/typebox"
import { LOCAL } from "../audit-log/audit-log"
import { ApiError, fail, Problems } from "../core/errors"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { MasterKeyError, type Secrets } from "../core/secrets"
import { UnusableFile } from "../core/small-file"
import { mailboxText, nameText } from "../http/field-schemas"
import { check } from "../http/validate"
import { LINK_SECONDS, type LinkSessions } from "../identity/page-sessions"
import { LONG_EMAIL, Password } from "../identity/schemas"
import { revokeAll } from "../identity/sessions"
import type { AccountStatus } from "../identity/tables"
import * as longJobs from "../jobs/long-jobs"
import * as mailbox from "../mailbox/mailbox"
import { openRaw } from "../mailbox/mailbox"
import { instanceCallback } from "../providers/health"
import type { ProviderEnvironment } from "../providers/provider"
import { freeze, unfreeze } from "../reputation/evaluate"
import type { Store, Tx } from "../store/store"
import * as accounts from "../tenancy/accounts"
import * as operator from "../tenancy/operator"
import { findInstance } from "../tenancy/projects"
import { type FirstOwner, type SetupParts, setupResponse } from "../tenancy/setup"
import { requestBackup } from "./backup/backup-job"
import type { Backups } from "./backup/create-backup"
import { changeHeld, type HeldOrder } from "./held-work"
import { rotateMasterKey } from "./master-key"

/** Names the run of a server: of this process. It proves that HTTP and the admin socket lead to the same one. */
export const RUN_ID = newId()

/** Bun ends a connection after 10 s without a byte, and some orders take minutes. Its types lack the option. */
const UNLIMITED: object = { idleTimeout: 0 }

/** What the operating system takes as the address of a socket, with room for its end. */
const MOST_BYTES = 100

/**
 * Takes orders of the command line on this machine while the server holds the database. Access to the
 * data folder is the whole permission. Returns how to close it.
 */
export function openAdminSocket(path: string, parts: AdminParts): () => Promise<void> {
  if (Buffer.byteLength(path) > MOST_BYTES) {
    log.warn("local administration is not available, because the path of its socket is too long", {
      path,
    })
    return async () => {}
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new UnusableFile(path, "is a folder", "Move it away: a socket gets this name.")
  rmSync(path, { force: true }) // left by a process that was killed; a living one holds the lock
  const others = process.umask(0o177) // never open to other users, not even for a moment
  const server = Bun.serve({
    unix: path,
    fetch: (request: Request) => answer(parts, request),
    ...UNLIMITED,
  })
  process.umask(others)
  return async () => {
    await server.stop(true)
    rmSync(path, { force: true })
  }
}

async function answer(parts: AdminParts, request: Request): Promise<Response> {
  try {
    const order = (await request.json()) as AdminOrder
    log.info("local administration", { operation: order.operation })
    return Response.json({ data: await administer(parts, order) })
  } catch (error) {
    const is_refusal = error instanceof ApiError
    if (!is_refusal) log.error("local administration failed", { error })
    const { code, message, details, status } = is_refusal
      ? error
      : new ApiError("internal_error", "An internal error occurred. The log has the reason.")
    return Response.json({ error: { code, message, details } }, { status })
  }
}

interface AdminParts extends SetupParts {
  secrets: Secrets
  link_base: () => string
  providers: Pick<ProviderEnvironment, "own">
  backups: Backups
  /** Of the server that runs; a command that opened the data itself has none. */
  links?: LinkSessions
  /** As for `rotateMasterKey`. */
  own_nodes?: number
}

type NewOwner = FirstOwner & { password: string }

/** The orders of a person at the machine itself. They need no credential. */
export type AdminOrder =
  | ({ operation: "bootstrap" } & NewOwner)
  | { operation: "reset_owner"; email: string; password: string; keep_mfa: boolean }
  | { operation: "set_status"; account: string; status: AccountStatus; reason: string | null }
  | FreezeOrder
  | ({ operation: "set_plan"; account: string } & operator.PlanChange)
  | { operation: "accounts" }
  | { operation: "users" }
  | { operation: "lock_user" | "unlock_user"; email: string }
  | { operation: "set_operator"; email: string; operator: boolean }
  | ({ operation: "system_mails"; limit: number } & mailbox.MailFilter)
  | { operation: "system_mail"; id: string }
  | { operation: "ses_callback" }
  /** With a run it is refused by every other server. */
  | ({ operation: "held_work"; run_id?: string | undefined } & HeldOrder)
  /** With a folder it is refused by a server that writes its backups to another one. */
  | { operation: "create_backup"; dir?: string | undefined }
  | { operation: "backups" }
  | { operation: "instance_job"; id: string }
  | { operation: "sign_in_link" }
  | { operation: "rotate_master_key"; new_key: string | null; end_links: boolean }

/** Carries out one order. Throws ApiError as a route would. */
export async function administer(parts: AdminParts, order: AdminOrder): Promise<object> {
  const { store } = parts
  switch (order.operation) {
    case "bootstrap":
      return bootstrap(parts, order)
    case "reset_owner":
      return operator.resetOwner(store, order)
    case "set_status":
      return toResponse(store, await store.tx((tx) => operator.setStatus(tx, order.account, order)))
    case "freeze":
    case "unfreeze":
      return toResponse(store, await store.tx((tx) => setFrozen(tx, order)))
    case "set_plan":
      return toResponse(store, await store.tx((tx) => operator.setPlan(tx, order.account, order)))
    case "accounts":
      return Promise.all((await operator.listAll(store.read)).map((row) => toResponse(store, row)))
    case "users":
      return operator.listUsers(store)
    case "lock_user":
      return operator.lockUser(store, order.email)
    case "unlock_user":
      return operator.unlockUser(store, order.email)
    case "set_operator":
      return operator.setOperator(store, order.email, order.operator)
    case "system_mails":
      return systemMails(store, order)
    case "system_mail":
      return systemMail(parts, order.id)
    case "ses_callback":
      return providerCallback(parts)
    case "held_work":
      requireRun(order.run_id)
      return changeHeld(store, order)
    case "create_backup":
      requireDir(parts.backups.dir, order.dir)
      return store.tx(requestBackup)
    case "backups":
      return parts.backups.list()
    case "instance_job":
      return longJobs.find(store.read, longJobs.INSTANCE_JOB, order.id)
    case "sign_in_link":
      return signInLink(parts)
    case "rotate_master_key":
      return rotated(parts, order)
  }
}

function requireRun(run_id: string = RUN_ID): void {
  if (run_id !== RUN_ID) fail("conflict", "Another server runs in this data folder.")
}

function requireDir(own: string, wanted = own): void {
  if (resolve(wanted) === resolve(own)) return
  const message = `The running server writes its backups to ${own}, not to ${wanted}. Leave backup.dir out, or set it for the server.`
  fail("conflict", message)
}

/** Throws 409 where this server gives out none: under `serve`. */
function signInLink({ links }: AdminParts) {
  const open_url =
    links?.newLink() ?? fail("conflict", "No server runs, so nothing answers a link.")
  return { open_url, expires_in: LINK_SECONDS }
}

type FreezeOrder = { operation: "freeze" | "unfreeze"; account: string; reason: string }

async function setFrozen(tx: Tx, { operation, account, reason }: FreezeOrder) {
  const { id } = await operator.named(tx, account)
  const change = operation === "freeze" ? freeze : unfreeze
  return change(tx, id, reason, LOCAL)
}

/** Mail of the instance itself that the embedded mailbox caught; no route ever shows it. */
async function systemMails(
  { read }: Store,
  { to, from, search, since, unread, limit }: mailbox.MailFilter & { limit: number },
) {
  const own = await findInstance(read)
  const filter = { to, from, search, since, unread }
  return own ? (await mailbox.list(read, own.project_id, filter, { limit })).rows : []
}

async function systemMail({ store: { read }, secrets }: AdminParts, id: string) {
  const own = await findInstance(read)
  const mail = await mailbox.findRow(read, own?.project_id ?? "", id)
  const raw = openRaw(secrets, mail)
  const { from_address: from, to_address: to, subject, email_id, created_at } = mail
  return { id, email_id, from, to, subject, created_at, raw: raw.toString("base64") }
}

/** Throws 409 where the given key is none, or is not the one that a rotation began with. */
async function rotated(parts: AdminParts, order: Parameters<typeof rotateMasterKey>[1]) {
  try {
    return await rotateMasterKey(parts, order)
  } catch (error) {
    if (error instanceof MasterKeyError) fail("conflict", error.message)
    throw error
  }
}

/** Knowing the address is the credential, so no route and no log shows it. */
function providerCallback({ secrets, link_base, providers }: AdminParts) {
  const descriptor = providers.own.email?.descriptor
  if (!descriptor?.callbacks) {
    return fail(
      "conflict",
      `The provider of this instance, ${descriptor?.name}, calls no address. Set delivery.provider to another.`,
    )
  }
  if (link_base() === "")
    fail("conflict", "The setting base_url is missing, so the address is not known. Set base_url.")
  return { callback_url: `${link_base()}${instanceCallback(secrets, descriptor)}` }
}

/** The new owner signs in afterwards: the answer has no session. */
async function bootstrap(parts: AdminParts, order: NewOwner) {
  const { email, password, name, account_name, project_name } = order
  const wanted = { email, password, name, account_name, project_name }
  requireOwner(wanted)
  const made = await operator.bootstrap(parts, wanted)
  const { session, ...rest } = await setupResponse(parts.store.read, made)
  await parts.store.tx((tx) => revokeAll(tx, session.user.id))
  return { user: session.user, ...rest }
}

const toResponse = async ({ read }: Store, row: accounts.AccountRow) => ({
  ...(await accounts.toResponse(read, row)),
  status_reason: row.status_reason,
  deleting_at: row.deleting_at,
})

/** As `POST /v1/setup` takes it, but for the token. */
const Owner = t.Object({
  email: mailboxText(LONG_EMAIL),
  password: Password,
  name: t.Optional(nameText()),
  account_name: nameText(),
  project_name: t.Optional(nameText()),
})

/** Setup at the machine itself is as strict as the route, and throws 422 as it does. */
function requireOwner(owner: Record<string, unknown>): void {
  const given = Object.entries(owner).filter(([, value]) => value !== null)
  const problems = new Problems()
  check(Owner, Object.fromEntries(given), problems)
  problems.throwIfAny()
}
