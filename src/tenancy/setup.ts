import { timingSafeEqual } from "node:crypto"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { and, asc, eq, isNotNull, isNull } from "drizzle-orm"
import { LOCAL } from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import * as apiKeys from "../identity/api-keys"
import type { SessionClient, Sessions } from "../identity/sessions"
import {
  accounts as accountTable,
  consoleUsers,
  projects as projectTable,
} from "../identity/tables"
import { newToken } from "../identity/tokens"
import * as users from "../identity/users"
import { defaultPlan, limitsOf } from "../plans/plans"
import * as instanceValues from "../store/instance-values"
import type { Reader, Store, Tx } from "../store/store"
import * as accounts from "./accounts"
import type { ProjectHome } from "./project-members"
import * as projects from "./projects"

const SETUP_TOKEN = "setup_token"
const FIRST_LOCK = "first_lock"
const LOCAL_KEY = "local_api_key"

export interface SetupParts {
  store: Store
  setup: Setup
  sessions: Sessions
}

export interface SetupToken {
  token: string
  /** The file that holds it too, readable by the owner of the data folder only. */
  path: string
}

interface SetupOptions {
  store: Store
  secrets: Secrets
  data_dir: string
}

/**
 * The setup token proves that the first owner can see the console or the files of this machine. Sealed in the
 * database, so that all nodes and every start until then know the same one.
 */
export class Setup {
  readonly #options: SetupOptions

  constructor(options: SetupOptions) {
    this.#options = options
  }

  /** Called at every start. Undefined, and nothing is left of the token, once there is an owner. */
  async begin(): Promise<SetupToken | undefined> {
    const token = await this.#options.store.tx(async (tx) => {
      await oneAtATime(tx)
      if (!(await isSetUp(tx))) return (await this.#read(tx)) ?? (await this.#make(tx))
      await this.end(tx)
      return undefined
    })
    if (token === undefined) return undefined
    writeFileSync(this.#path, `${token}\n`, { mode: 0o600 })
    chmodSync(this.#path, 0o600) // an older file keeps the mode it had
    return { token, path: this.#path }
  }

  /** Throws 404 once the instance has an owner, 401 for a wrong token. Holds off other setups. */
  async demand(tx: Tx, token: string): Promise<void> {
    await oneAtATime(tx)
    await demandUnowned(tx)
    const right = await this.#read(tx)
    if (right === undefined || !isEqual(token, right)) {
      fail(
        "unauthorized",
        "The setup token is not right. Use the one that the first start printed.",
      )
    }
  }

  /** The token dies with the first owner. */
  async end(tx: Tx): Promise<void> {
    await instanceValues.remove(tx, SETUP_TOKEN)
    tx.afterCommit(() => this.#removeFile())
  }

  get #path() {
    return join(this.#options.data_dir, "setup-token")
  }

  #removeFile() {
    try {
      rmSync(this.#path, { force: true })
    } catch (error) {
      log.warn(
        "the file of the setup token could not be removed; its token is not valid any more",
        { error },
      )
    }
  }

  async #read(tx: Tx): Promise<string | undefined> {
    const sealed = await instanceValues.find(tx, SETUP_TOKEN)
    return sealed && this.#options.secrets.open(sealed, SETUP_TOKEN)
  }

  async #make(tx: Tx): Promise<string> {
    const token = newToken("setup")
    await instanceValues.set(tx, SETUP_TOKEN, this.#options.secrets.seal(token, SETUP_TOKEN))
    return token
  }
}

/** Throws 404: a finished setup is no route any more. */
export async function demandUnowned(tx: Tx): Promise<void> {
  if (await isSetUp(tx)) fail("not_found", "This instance is set up already. Sign in instead.")
}

function isEqual(given: string, right: string): boolean {
  const [left, other] = [Buffer.from(given), Buffer.from(right)]
  return left.length === other.length && timingSafeEqual(left, other)
}

interface FirstOwner {
  email: string
  name: string | null
  password_hash: string
  account_name: string
  project_name: string
}

/**
 * The first owner, who also runs the instance, with an account, a project and a key. What `init`
 * or `up` began is adopted, its key included; otherwise everything is made. The caller has made
 * sure that there is no owner yet.
 */
export async function establish(
  tx: Tx,
  sessions: Sessions,
  owner: FirstOwner,
  client: SessionClient,
) {
  const { email, name, password_hash } = owner
  const user = await users.create(tx, { email, name, password_hash, operator: true })
  const home = (await adopted(tx, user, owner, client)) ?? (await founded(tx, user, owner, client))
  const ids = { account_id: home.account.id, project_id: home.project.id }
  const api_key = await apiKeys.create(
    tx,
    { ...ids, created_by: { type: "user", id: user.id } },
    { name: "first", scopes: ["*"], expires_at: null, ip_addresses: [] },
    users.asUser(user, client.ip),
  )
  return {
    session: await sessions.start(tx, user, client),
    account: home.account,
    project: home.project,
    api_key,
  }
}

export type Established = Awaited<ReturnType<typeof establish>>

/** What setup answers. */
export async function setupRecord(db: Reader, { account, project, ...rest }: Established) {
  return {
    ...rest,
    account: await accounts.accountRecord(db, account),
    project: projects.projectRecord(project),
  }
}

async function adopted(tx: Tx, user: users.UserRow, owner: FirstOwner, { ip }: SessionClient) {
  const home = await ownerless(tx)
  if (!home) return undefined
  const by = users.asUser(user, ip)
  await accounts.adopt(tx, home.account_id, user.id, by)
  const account = await accounts.patch(tx, home.account_id, { name: owner.account_name }, by)
  const named = { name: owner.project_name }
  const project = await projects.patch(tx, home.account_id, home.project_id, named, by)
  return { account, project }
}

async function founded(tx: Tx, user: users.UserRow, owner: FirstOwner, { ip }: SessionClient) {
  const by = users.asUser(user, ip)
  const plan = defaultPlan()
  const { account_name, project_name } = owner
  const wanted = { name: account_name, plan, owner_user_id: user.id }
  const account = await accounts.create(tx, wanted, by)
  const limit = limitsOf(account).projects
  const of = { account_id: account.id, name: project_name, limit, plan }
  return { account, project: await projects.create(tx, of, by) }
}

interface FirstProject {
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
export function ensureFirst(
  store: Store,
  secrets: Secrets,
  options: FirstOptions,
): Promise<FirstProject> {
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
    .select({ account_id: projectTable.account_id, project_id: projectTable.id })
    .from(projectTable)
    .where(and(eq(projectTable.status, "active"), eq(projectTable.hidden, false)))
    .orderBy(asc(projectTable.id))
    .limit(1)

/** Two nodes that start together on an empty database must not make two homes. */
const oneAtATime = (tx: Tx) => instanceValues.set(tx, FIRST_LOCK, "")

/** Ownerless, until setup or the local `admin bootstrap` gives it an owner. */
async function makeHome(tx: Tx): Promise<ProjectHome> {
  const plan = defaultPlan()
  const account = await accounts.create(tx, { name: "Local", plan, owner_user_id: null }, LOCAL)
  const wanted = { account_id: account.id, name: "Default", limit: null, plan }
  const project = await projects.create(tx, wanted, LOCAL)
  return { account_id: account.id, project_id: project.id }
}

/** The home that nobody owns yet: a box begun by `init` or `up` before its setup. */
async function ownerless(db: Pick<Tx, "select">): Promise<ProjectHome | undefined> {
  const [home] = await db
    .select({ account_id: projectTable.account_id, project_id: projectTable.id })
    .from(projectTable)
    .innerJoin(accountTable, eq(accountTable.id, projectTable.account_id))
    .where(
      and(
        isNull(accountTable.owner_user_id),
        isNull(accountTable.deleting_at),
        eq(projectTable.status, "active"),
        eq(projectTable.hidden, false),
      ),
    )
    .orderBy(asc(projectTable.id))
    .limit(1)
  return home
}

/**
 * Whether some account has an owner, or somebody runs the instance although no account is left:
 * then there is nothing to set up.
 */
export async function isSetUp(db: Pick<Tx, "select">): Promise<boolean> {
  const owned = isNotNull(accountTable.owner_user_id)
  const rows = await db.select({ id: accountTable.id }).from(accountTable).where(owned).limit(1)
  if (rows.length > 0) return true
  const { id, operator } = consoleUsers
  const operators = await db.select({ id }).from(consoleUsers).where(eq(operator, true)).limit(1)
  return operators.length > 0
}

type KeyOptions = FirstOptions & { created: boolean }

async function keyOf(tx: Tx, secrets: Secrets, home: ProjectHome, options: KeyOptions) {
  const kept = await keptKey(tx, secrets)
  if (kept && !options.new_key) return options.keep_key ? kept.key : null
  if (kept) await apiKeys.revoke(tx, home.project_id, kept.id)
  if (!options.keep_key && !options.created) return null

  const owner = { ...home, created_by: { type: "local" as const, id: null } }
  const wanted = { name: "local", scopes: ["*"], expires_at: null, ip_addresses: [] }
  const { id, key } = await apiKeys.create(tx, owner, wanted)
  if (options.keep_key) await keepKey(tx, secrets, { id, key })
  return key
}

interface KeptKey {
  id: string
  key: string
}

/** A kept key that was revoked meanwhile is as good as none. */
async function keptKey(tx: Tx, secrets: Secrets): Promise<KeptKey | undefined> {
  const sealed = await instanceValues.find(tx, LOCAL_KEY)
  if (sealed === undefined) return undefined
  const kept = JSON.parse(secrets.open(sealed, LOCAL_KEY)) as KeptKey
  const [project] = await firstProject(tx)
  if (!project) return undefined
  const { status } = await apiKeys.find(tx, project.project_id, kept.id)
  return status === "active" ? kept : undefined
}

const keepKey = (tx: Tx, secrets: Secrets, kept: KeptKey) =>
  instanceValues.set(tx, LOCAL_KEY, secrets.seal(JSON.stringify(kept), LOCAL_KEY))
