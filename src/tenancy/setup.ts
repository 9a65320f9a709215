import { timingSafeEqual } from "node:crypto"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { and, asc, eq, isNotNull, isNull } from "drizzle-orm"
import { type By, LOCAL } from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { requireFile } from "../core/small-file"
import { AccessTokens } from "../identity/access-token"
import * as apiKeys from "../identity/api-keys"
import { LinkSessions } from "../identity/page-sessions"
import { type SessionClient, Sessions } from "../identity/sessions"
import {
  accounts as accountTable,
  consoleUsers,
  projects as projectTable,
  throttles,
} from "../identity/tables"
import * as users from "../identity/users"
import { defaultPlan, limitsOf } from "../plans/plans"
import { Throttle } from "../sign-in/throttle"
import { newToken } from "../sign-in/tokens"
import * as instanceValues from "../store/instance-values"
import type { Reader, Store, Tx } from "../store/store"
import * as accounts from "./accounts"
import type { SignUp } from "./invitations"
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
  /** Where the file of the setup token is put. */
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
    requireFile(this.#path, "Move it away: the setup token is written there.")
    writeFileSync(this.#path, `${token}\n`, { mode: 0o600 })
    chmodSync(this.#path, 0o600) // an older file keeps the mode it had
    return { token, path: this.#path }
  }

  /** Throws 404 once the instance has an owner, 401 for a wrong token. Holds off other setups. */
  async require(tx: Tx, token: string): Promise<void> {
    await oneAtATime(tx)
    await requireUnowned(tx)
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
export async function requireUnowned(tx: Tx): Promise<void> {
  if (await isSetUp(tx)) fail("not_found", "This instance is set up already. Sign in instead.")
}

function isEqual(given: string, right: string): boolean {
  const [left, other] = [Buffer.from(given), Buffer.from(right)]
  return left.length === other.length && timingSafeEqual(left, other)
}

export interface FirstOwner {
  email: string
  name: string | null
  account_name: string
  project_name: string
}

/**
 * The first owner, the operator of the instance, with an account, a project and a key. What `init`
 * or `up` began is adopted, its key included; otherwise everything is made. The setup token ends
 * with it. The caller has made sure that there is no owner yet.
 */
export async function establish(
  tx: Tx,
  { sessions, setup }: Pick<SetupParts, "sessions" | "setup">,
  { email, name, password_hash, ...names }: FirstOwner & { password_hash: string },
  client: SessionClient,
) {
  await setup.end(tx)
  const user = await users.create(tx, { email, name, password_hash, operator: true })
  const by = users.asUser(user, client.ip)
  const { account, project } =
    (await adopt(tx, names, user.id, by)) ?? (await found(tx, names, user.id, by))
  const created_by = { type: "user" as const, id: user.id }
  const owner = { account_id: account.id, project_id: project.id, created_by }
  const wanted = { name: "first", scopes: ["*"], expires_at: null, ip_addresses: [] }
  const api_key = await apiKeys.create(tx, owner, wanted, by)
  return { session: await sessions.start(tx, user, client), account, project, api_key }
}

type Established = Awaited<ReturnType<typeof establish>>

/** What setup answers. */
export async function setupResponse(db: Reader, { account, project, ...rest }: Established) {
  return {
    ...rest,
    account: await accounts.toResponse(db, account),
    project: projects.toResponse(project),
  }
}

type Names = Pick<FirstOwner, "account_name" | "project_name">

async function adopt(tx: Tx, { account_name, project_name }: Names, user_id: string, by: By) {
  const home = await ownerless(tx)
  if (!home) return undefined
  const { account_id, project_id } = home
  await accounts.adopt(tx, account_id, user_id, by)
  const account = await accounts.patch(tx, account_id, { name: account_name }, by)
  return {
    account,
    project: await projects.patch(tx, account_id, project_id, { name: project_name }, by),
  }
}

/**
 * An account with its first project. Where `user_id` is null it has no owner until a user adopts
 * it.
 */
async function found(
  tx: Tx,
  { account_name, project_name }: Names,
  user_id: string | null,
  by: By,
) {
  const plan = defaultPlan()
  const account = await accounts.create(
    tx,
    { name: account_name, plan, owner_user_id: user_id },
    by,
  )
  const limit = user_id === null ? null : limitsOf(account).projects
  const wanted = { account_id: account.id, name: project_name, limit, plan }
  return { account, project: await projects.create(tx, wanted, by) }
}

interface FirstProject extends projects.ProjectHome {
  /** Present when it was made just now, or when it is kept for `up`. */
  api_key: string | null
  key_id: string | null
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
    const home = known ?? (await foundLocal(tx))
    const kept = await keyOf(tx, secrets, home, { ...options, created: !known })
    const { id: key_id = null, key: api_key = null } = kept ?? {}
    return { ...home, key_id, api_key, created: !known }
  })
}

async function foundLocal(tx: Tx): Promise<projects.ProjectHome> {
  const names = { account_name: "Local", project_name: "Default" }
  const { account, project } = await found(tx, names, null, LOCAL)
  return { account_id: account.id, project_id: project.id }
}

/** The oldest project: the one that `init` and `up` made. */
export const firstProject = (tx: Pick<Tx, "select">) =>
  tx
    .select({ account_id: projectTable.account_id, project_id: projectTable.id })
    .from(projectTable)
    .where(isOpen)
    .orderBy(asc(projectTable.id))
    .limit(1)

const isOpen = and(eq(projectTable.status, "active"), eq(projectTable.hidden, false))

/** Two nodes that start together on an empty database must not make two homes. */
const oneAtATime = (tx: Tx) => instanceValues.set(tx, FIRST_LOCK, "")

/** The account without an owner, and its project: made by `init` or `up` before the setup. */
async function ownerless(db: Pick<Tx, "select">): Promise<projects.ProjectHome | undefined> {
  const [home] = await db
    .select({ account_id: projectTable.account_id, project_id: projectTable.id })
    .from(projectTable)
    .innerJoin(accountTable, eq(accountTable.id, projectTable.account_id))
    .where(and(isNull(accountTable.owner_user_id), isNull(accountTable.deleting_at), isOpen))
    .orderBy(asc(projectTable.id))
    .limit(1)
  return home
}

/**
 * Whether an account has an owner, or a user runs the instance although no account is left: then
 * there is nothing to set up.
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

async function keyOf(tx: Tx, secrets: Secrets, home: projects.ProjectHome, options: KeyOptions) {
  const kept = await keptKey(tx, secrets)
  if (kept && !options.new_key) return options.keep_key ? kept : null
  if (kept) await apiKeys.revoke(tx, home.project_id, kept.id)
  if (!options.keep_key && !options.created) return null

  const owner = { ...home, created_by: { type: "local" as const, id: null } }
  const wanted = { name: "local", scopes: ["*"], expires_at: null, ip_addresses: [] }
  const { id, key } = await apiKeys.create(tx, owner, wanted)
  const sealed = secrets.seal(JSON.stringify({ id, key }), LOCAL_KEY)
  if (options.keep_key) await instanceValues.set(tx, LOCAL_KEY, sealed)
  return { id, key }
}

/** A kept key that was revoked meanwhile is as good as none. */
async function keptKey(tx: Tx, secrets: Secrets) {
  const sealed = await instanceValues.find(tx, LOCAL_KEY)
  const [project] = await firstProject(tx)
  if (sealed === undefined || !project) return undefined
  const kept = JSON.parse(secrets.open(sealed, LOCAL_KEY)) as { id: string; key: string }
  const row = await apiKeys.apiKey.find(tx, project.project_id, kept.id)
  const { status } = apiKeys.toResponse(row)
  return status === "active" ? kept : undefined
}

interface SessionOptions extends SetupOptions {
  /** The public address of this instance, without a slash at the end. */
  base_url: () => string
  sign_up: SignUp
}

/** Everything that console users need, on one store. */
export function sessionParts({ data_dir, sign_up, ...options }: SessionOptions) {
  const { store, secrets, base_url } = options
  const access = new AccessTokens({ store, secrets, base_url })
  const links = new LinkSessions()
  return {
    base_url,
    sign_up,
    access,
    links,
    verifyAccess: async (token: string) => {
      const bearer = await access.verify(token)
      if ("key_id" in bearer) links.require(bearer)
      return bearer
    },
    sessions: new Sessions({ store, secrets, access }),
    throttle: new Throttle(store, secrets, throttles),
    setup: new Setup({ store, secrets, data_dir }),
  }
}
