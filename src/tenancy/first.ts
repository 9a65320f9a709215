import { and, asc, eq, isNotNull, isNull } from "drizzle-orm"
import { LOCAL } from "../audit-log/audit-log"
import type { Secrets } from "../core/secrets"
import * as apiKeys from "../identity/api-keys"
import { accounts as accountRows, consoleUsers, projects as projectRows } from "../identity/tables"
import { defaultPlan } from "../plans/plans"
import * as instanceValues from "../store/instance-values"
import type { Store, Tx } from "../store/store"
import * as accounts from "./accounts"
import * as projects from "./projects"

const FIRST_LOCK = "first_lock"
const LOCAL_KEY = "local_api_key"

export interface First {
  account_id: string
  project_id: string
  /** Present when it was made just now, or when it is kept for `up`. */
  api_key: string | null
  /** Whether there was no account before. */
  created: boolean
}

export interface FirstOptions {
  /** Keeps the key sealed in the database, so that `up` can print the same one again. */
  keep_key: boolean
  /** Revokes the kept key and makes another one. */
  new_key: boolean
}

/** Makes the first account, project and key where there is none. Safe to call at every start. */
export function ensureFirst(store: Store, secrets: Secrets, options: FirstOptions): Promise<First> {
  return store.tx(async (tx) => {
    await oneAtATime(tx)
    const [known] = await firstProject(tx)
    const home = known ?? (await makeHome(tx))
    const api_key = await keyOf(tx, secrets, home, { ...options, created: !known })
    return { ...home, api_key, created: !known }
  })
}

/** The oldest project: the one that `init` and `up` made. */
export const firstProject = (tx: Pick<Tx, "select">) =>
  tx
    .select({ account_id: projectRows.account_id, project_id: projectRows.id })
    .from(projectRows)
    .where(and(eq(projectRows.status, "active"), eq(projectRows.hidden, false)))
    .orderBy(asc(projectRows.id))
    .limit(1)

/** Two nodes that start together on an empty database must not make two homes. */
export const oneAtATime = (tx: Tx) => instanceValues.set(tx, FIRST_LOCK, "")

interface Home {
  account_id: string
  project_id: string
}

/** Ownerless, until setup or the local `admin bootstrap` gives it an owner. */
async function makeHome(tx: Tx): Promise<Home> {
  const plan = defaultPlan()
  const account = await accounts.create(tx, { name: "Local", plan, owner_user_id: null }, LOCAL)
  const wanted = { account_id: account.id, name: "Default", limit: null, plan }
  const project = await projects.create(tx, wanted, LOCAL)
  return { account_id: account.id, project_id: project.id }
}

/** The home that nobody owns yet: a box begun by `init` or `up` before its setup. */
export async function ownerless(db: Pick<Tx, "select">): Promise<Home | undefined> {
  const [home] = await db
    .select({ account_id: projectRows.account_id, project_id: projectRows.id })
    .from(projectRows)
    .innerJoin(accountRows, eq(accountRows.id, projectRows.account_id))
    .where(
      and(
        isNull(accountRows.owner_user_id),
        isNull(accountRows.deleting_at),
        eq(projectRows.status, "active"),
        eq(projectRows.hidden, false),
      ),
    )
    .orderBy(asc(projectRows.id))
    .limit(1)
  return home
}

/**
 * Whether some account has an owner, or somebody runs the instance although no account is left:
 * then there is nothing to set up.
 */
export async function isSetUp(db: Pick<Tx, "select">): Promise<boolean> {
  const owned = isNotNull(accountRows.owner_user_id)
  const rows = await db.select({ id: accountRows.id }).from(accountRows).where(owned).limit(1)
  if (rows.length > 0) return true
  const { id, operator } = consoleUsers
  const operators = await db.select({ id }).from(consoleUsers).where(eq(operator, true)).limit(1)
  return operators.length > 0
}

type KeyOptions = FirstOptions & { created: boolean }

async function keyOf(tx: Tx, secrets: Secrets, home: Home, options: KeyOptions) {
  const kept = await keptKey(tx, secrets)
  if (kept && !options.new_key) return options.keep_key ? kept.key : null
  if (kept) await apiKeys.revoke(tx, home.project_id, kept.id)
  if (!options.keep_key && !options.created) return null

  const owner = { ...home, created_by: { type: "local", id: null } }
  const wanted = { name: "local", scopes: ["*"], expires_at: null, ip_addresses: [] }
  const { id, key } = await apiKeys.create(tx, owner, wanted)
  if (options.keep_key) await keepKey(tx, secrets, { id, key })
  return key
}

interface Kept {
  id: string
  key: string
}

/** A kept key that was revoked meanwhile is as good as none. */
async function keptKey(tx: Tx, secrets: Secrets): Promise<Kept | undefined> {
  const sealed = await instanceValues.find(tx, LOCAL_KEY)
  if (sealed === undefined) return undefined
  const kept = JSON.parse(secrets.open(sealed, LOCAL_KEY)) as Kept
  const [project] = await firstProject(tx)
  if (!project) return undefined
  const { status } = await apiKeys.find(tx, project.project_id, kept.id)
  return status === "active" ? kept : undefined
}

const keepKey = (tx: Tx, secrets: Secrets, kept: Kept) =>
  instanceValues.set(tx, LOCAL_KEY, secrets.seal(JSON.stringify(kept), LOCAL_KEY))
