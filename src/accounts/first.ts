import { asc, eq } from "drizzle-orm"
import * as apiKeys from "../api-keys/api-keys"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { projects } from "../projects/tables"
import type { Store, Tx } from "../store/store"
import { accounts, instanceValues } from "./tables"

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
    .select({ account_id: projects.account_id, project_id: projects.id })
    .from(projects)
    .where(eq(projects.status, "active"))
    .orderBy(asc(projects.id))
    .limit(1)

/** Two nodes that start together on an empty database must not make two homes. */
async function oneAtATime(tx: Tx) {
  const row = { name: FIRST_LOCK, value: "" }
  const again = { target: instanceValues.name, set: { value: "" } }
  await tx.insert(instanceValues).values(row).onConflictDoUpdate(again)
}

interface Home {
  account_id: string
  project_id: string
}

async function makeHome(tx: Tx): Promise<Home> {
  const [account_id, project_id] = [newId(), newId()]
  const times = { created_at: now(), updated_at: now() }
  await tx.insert(accounts).values({
    id: account_id,
    name: "Local",
    slug: "local",
    plan: "enterprise", // a fresh instance is its owner's: no feature walls
    status: "active",
    sending_status: "active",
    ...times,
  })
  const project = { id: project_id, account_id, name: "Default", slug: "default" }
  await tx.insert(projects).values({ ...project, status: "active", ...times })
  return { account_id, project_id }
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
  const [row] = await tx.select().from(instanceValues).where(eq(instanceValues.name, LOCAL_KEY))
  if (!row) return undefined
  const kept = JSON.parse(secrets.open(row.value, LOCAL_KEY)) as Kept
  const [project] = await firstProject(tx)
  if (!project) return undefined
  const { status } = await apiKeys.find(tx, project.project_id, kept.id)
  return status === "active" ? kept : undefined
}

async function keepKey(tx: Tx, secrets: Secrets, kept: Kept) {
  const value = secrets.seal(JSON.stringify(kept), LOCAL_KEY)
  await tx.delete(instanceValues).where(eq(instanceValues.name, LOCAL_KEY))
  await tx.insert(instanceValues).values({ name: LOCAL_KEY, value })
}
