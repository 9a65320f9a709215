import { eq, or } from "drizzle-orm"
import { isoFrom, isPast, now } from "../core/time"
import type {
  ApplicationCredentials,
  BrowserTokens,
  NamedApplication,
  TokenBearer,
} from "../http/guard"
import { refuse } from "../identity/authenticate"
import {
  type AllowedOrigins,
  accountFacts,
  type BoundApplication,
  type Caller,
  nobody,
  withDefaults,
} from "../identity/caller"
import { accounts, projects } from "../identity/tables"
import { findBearer, isAlive } from "../inbox/inbox-tokens"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { UserTokens } from "./access-tokens"
import { hashOfSecret } from "./credential-texts"
import { type AuthEnvironment, environmentNamed, originsOf } from "./environments"
import { lacksFactor, refusalOfSession } from "./socket-sessions"
import { applicationKeys, applications } from "./tables"

interface CredentialParts {
  store: Store
  tokens: Pick<UserTokens, "isOwn" | "prove">
}

const PUBLIC_FORM = /^svca_(live_|test_)?pub_[\w-]+$/
const SECRET_FORM = /^svca_sec_[\w-]+$/

/** What the API key of a server needs to reach end users, and all that the secret of an application may do. */
const SCOPES_OF_SECRETS = ["auth:read", "auth:write"]

/** The credentials of applications and of their users, as the guard asks for them. */
export class AppCredentials implements ApplicationCredentials {
  readonly #parts: CredentialParts
  readonly user_tokens: BrowserTokens

  constructor(parts: CredentialParts) {
    this.#parts = parts
    this.user_tokens = {
      isOwn: (token) => parts.tokens.isOwn(token),
      identify: (token, ip) => this.#identifyUser(token, ip),
    }
  }

  /** Why a socket that a user opened may not be open any more. */
  refusalOfSession = (session_id: string, origin: string | null) =>
    refusalOfSession(this.#parts.store.read, session_id, origin)

  /** Its key names the application, and proves nothing: everybody can read it in the app. */
  async identifyKey(public_key: string, ip: string): Promise<NamedApplication> {
    const db = this.#parts.store.read
    if (!PUBLIC_FORM.test(public_key)) return refuse()
    const row = await knownKeys(
      db,
      public_key,
      async () => (await findKey(db, { key: public_key }))[0],
    )
    if (!row || !isUsable(row)) return refuse()
    const { id: public_key_id, environment: name, application_id: id } = row.key
    const environment = name === null ? undefined : await environmentNamed(db, id, name)
    const allowed_origins = environment ? originsOf(environment) : row.application.allowed_origins // of a legacy key, which may be one of `live`
    const application = { id, environment: name, environment_id: environment?.id ?? null }
    const caller = callerOf(row, { ip, kind: "app", application, allowed_origins })
    return { caller, public_key_id }
  }

  async identifySecret(secret: string, ip: string): Promise<Caller> {
    const db = this.#parts.store.read
    if (!SECRET_FORM.test(secret)) return refuse()
    const hash = hashOfSecret(secret)
    const row = await knownSecrets(
      db,
      hash,
      async () => (await findSecret(db, { hash, previous: hash }))[0],
    )
    if (!row || !isUsable(row) || !isCurrent(row.application, hash)) return refuse()
    const { id, name } = row.application
    const application = { id, environment: null, environment_id: null }
    const caller = callerOf(row, { ip, kind: "key", application, allowed_origins: null })
    return { ...caller, actor: { type: "key", id, name }, scopes: SCOPES_OF_SECRETS }
  }

  async touch(tx: Tx, key_id: string): Promise<void> {
    await tx
      .update(applicationKeys)
      .set({ last_used_at: now() })
      .where(eq(applicationKeys.id, key_id))
  }

  async #identifyUser(token: string, ip: string): Promise<TokenBearer> {
    const { environment, claims, live } = await this.#parts.tokens.prove(token)
    const allowed_origins = originsOf(environment)
    if (!live) return { allowed_origins, caller: undefined }
    const { session, user } = live
    const owner = await ownerOf(this.#parts.store.read, environment.project_id, user)
    if (!owner || !isAlive(owner)) return refuse()
    const { subscriber } = owner
    const application = boundTo(environment)
    const caller = callerOf(owner, { ip, kind: "user", application, allowed_origins })
    return {
      allowed_origins,
      caller: {
        ...caller,
        subscriber_id: subscriber && subscriber.status !== "blocked" ? subscriber.id : null,
        end_user: {
          ...{ id: user.id, session_id: session.id, impersonated: session.act !== null },
          lacks_factor: lacksFactor(session, environment),
        },
        expires_at: isoFrom((claims.exp ?? 0) * 1000),
      },
    }
  }
}

const boundTo = ({ id, name, application }: AuthEnvironment): BoundApplication => ({
  id: application.id,
  environment: name,
  environment_id: id,
})

interface OwnerRow {
  project: typeof projects.$inferSelect
  account: typeof accounts.$inferSelect
}

interface Identified {
  ip: string
  kind: Caller["kind"]
  application: BoundApplication
  allowed_origins: AllowedOrigins | null
}

const callerOf = ({ project, account }: OwnerRow, identified: Identified): Caller => ({
  ...nobody(identified.ip),
  ...accountFacts(account),
  project_id: project.id,
  project_settings: withDefaults(project.settings),
  ...identified,
})

type ApplicationRow = typeof applications.$inferSelect

/** Credentials stop at once when their application, project or account is being deleted. */
const isUsable = (row: OwnerRow & { application: ApplicationRow }) =>
  isAlive(row) && row.application.deleting_at === null

/** The secret before the last rotation works until its overlap ends. */
const isCurrent = ({ secret_hash, previous_expires_at }: ApplicationRow, hash: string) =>
  secret_hash === hash || (previous_expires_at !== null && !isPast(previous_expires_at))

const OWNERS = ["applications", "projects", "accounts"]

type KeyRow = Awaited<ReturnType<typeof findKey>>[number]
type SecretRow = Awaited<ReturnType<typeof findSecret>>[number]

const knownKeys = cached<KeyRow | undefined>({
  tables: ["application_keys", ...OWNERS],
  keeps: (row) => row !== undefined,
})

const knownSecrets = cached<SecretRow | undefined>({
  tables: OWNERS,
  keeps: (row) => row !== undefined,
})

const OWNED = { application: applications, project: projects, account: accounts }

const findKey = prepared({ key: applicationKeys.key }, (db: Reader, slot) =>
  db
    .select({ key: applicationKeys, ...OWNED })
    .from(applicationKeys)
    .innerJoin(applications, eq(applications.id, applicationKeys.application_id))
    .innerJoin(projects, eq(projects.id, applications.project_id))
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(eq(applicationKeys.key, slot.key)),
)

const { secret_hash: hash, previous_secret_hash: previous } = applications

const findSecret = prepared({ hash, previous }, (db: Reader, slot) =>
  db
    .select(OWNED)
    .from(applications)
    .innerJoin(projects, eq(projects.id, applications.project_id))
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(or(eq(hash, slot.hash), eq(previous, slot.previous))),
)

type Owner = Awaited<ReturnType<typeof findBearer>>[number]

const knownOwners = cached<Owner | undefined>({ tables: ["projects", "accounts", "subscribers"] })

/** The project of a user, with their subscriber where they are one. */
function ownerOf(
  db: Reader,
  project_id: string,
  { id, subscriber_id }: { id: string; subscriber_id: string | null },
) {
  const wanted = { project_id, subscriber_id: subscriber_id ?? id } // no subscriber has the id of a user
  const name = `${project_id} ${subscriber_id}`
  return knownOwners(db, name, async () => (await findBearer(db, wanted))[0])
}
