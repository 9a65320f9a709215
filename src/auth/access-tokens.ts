import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { errors, type JWTPayload } from "jose"
import { isUuid, newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { isPast, millis, millisFrom } from "../core/time"
import { refuse } from "../identity/authenticate"
import { signToken, unprovenParts, verifyToken } from "../lib/signed-token"
import { provingKey, signerIn } from "../signing-keys/signing-keys"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import type { EndUserRow } from "./end-users"
import { type AuthEnvironment, environmentNamed } from "./environments"
import { activeOf, MOST_NAMED, type OwnOrganization } from "./own-organizations"
import type { AccessClaims } from "./schemas"
import { userSessions, users } from "./tables"

export type TokenClaims = Static<typeof AccessClaims>

export type UserSessionRow = typeof userSessions.$inferSelect

/** Of an access token (RFC 9068). */
const TYPE = "at+jwt"

/** What `app_metadata` may add to a token: it is sent with every request. */
const MOST_METADATA_BYTES = 1024

const BOUND_CLAIMS = ["sub", "sid", "env", "jti"]

interface UserTokenParts {
  store: Store
  secrets: Secrets
  /** The public address of this instance; asked at each use, since a free port is known late. */
  base_url: () => string
}

/** What a token is made of. */
export interface TokenSubject {
  environment: AuthEnvironment
  user: EndUserRow
  session: UserSessionRow
  /** Those of the user; the active one is the first. */
  organizations: OwnOrganization[]
}

/** What a token proves. */
export interface UserTokenBearer {
  /** Also where the token or its session is over, so that a page may read so. */
  environment: AuthEnvironment
  claims: TokenClaims
  /** Undefined where the token or the session is over, and where the user is not active. */
  live: LiveSession | undefined
}

export interface LiveSession {
  session: UserSessionRow
  user: Pick<EndUserRow, "id" | "status" | "subscriber_id">
}

/**
 * Tokens by which apps act for an end user: a JWT (RFC 9068) that a key of the application signed with ES256. The issuer
 * is the application's URL, and `{iss}/jwks.json` has the public keys.
 */
export class UserTokens {
  readonly #parts: UserTokenParts

  constructor(parts: UserTokenParts) {
    this.#parts = parts
  }

  /** In the transaction of the session. */
  async sign(tx: Tx, subject: TokenSubject): Promise<string> {
    const { id: application_id, project_id } = subject.environment.application
    const signer = await signerIn(tx, this.#parts.secrets, { application_id, project_id })
    return signToken(signer, TYPE, { iss: this.issuerOf(application_id), ...claimsOf(subject) })
  }

  /** Whether the text names this server as the one that made it for an end user. Proves nothing. */
  isOwn(token: string): boolean {
    return unprovenParts(token)?.iss.startsWith(this.issuerOf("")) ?? false
  }

  /**
   * What a token proves, and whether its session still lives: another node may have ended it just now. Throws 401 for
   * a text that is not of this server's making.
   */
  async prove(token: string): Promise<UserTokenBearer> {
    const { read } = this.#parts.store
    const { iss = "", kid = "" } = unprovenParts(token) ?? {}
    const application_id = iss.slice(this.issuerOf("").length)
    if (!this.isOwn(token) || !isUuid(application_id)) return refuse()
    const key = await provingKey(read, { application_id }, kid)
    if (!key) return refuse()
    const rules = { issuer: iss, audience: application_id, type: TYPE, claims: BOUND_CLAIMS }
    const verifying = verifyToken(token, key, { ...rules, at: new Date(millis()) })
    const { claims, is_over } = await verifying.then(asLive, asOver)
    const environment = await environmentNamed(read, application_id, claims.env)
    if (!environment || environment.application.deleting_at !== null) return refuse()
    const found = is_over ? undefined : await sessionById(read, claims.sid)
    const is_live = found && isLive(found, environment) && found.user.id === claims.sub
    return { environment, claims, live: is_live ? found : undefined }
  }

  /** Of an application; of none it begins every issuer. */
  issuerOf(application_id: string): string {
    return `${this.#parts.base_url()}/v1/auth/applications/${application_id}`
  }
}

/** What our key signed has our form. */
const asLive = (payload: JWTPayload) => ({ claims: payload as TokenClaims, is_over: false })

/** A token that was right once still tells its environment. */
const asOver = (error: unknown) =>
  error instanceof errors.JWTExpired ? { ...asLive(error.payload), is_over: true } : refuse()

/** How long the token that `sign` makes now is valid. While somebody else acts as the user, it is valid as long as the session. */
export const secondsOf = ({
  environment,
  session: { act, expires_at },
}: Pick<TokenSubject, "environment" | "session">): number =>
  act
    ? Math.max(0, Math.ceil((millisFrom(expires_at) - millis()) / 1000))
    : environment.application.session_duration_minutes * 60

/** Contract 50, section 1, without the issuer. */
function claimsOf({
  environment,
  user,
  session,
  organizations,
}: TokenSubject): Omit<TokenClaims, "iss"> {
  const active = activeOf(organizations)
  const iat = Math.floor(millis() / 1000)
  const { act } = session
  return {
    sub: user.id,
    aud: environment.application.id,
    env: environment.name,
    sid: session.id,
    jti: newId(),
    iat,
    exp: iat + secondsOf({ environment, session }),
    org_id: active.id,
    org_role: active.role,
    org_permissions: active.permissions,
    orgs: organizations.slice(0, MOST_NAMED).map(({ id, role }) => ({ id, role })),
    orgs_truncated: organizations.length > MOST_NAMED,
    amr: session.amr,
    auth_time: Math.floor(millisFrom(session.auth_time) / 1000),
    ...(act && { act: { sub: act.id } }),
    app_metadata: shownMetadata(environment.settings.token_claims, user.app_metadata),
  }
}

/** The named keys in their order, as far as they have room together. */
function shownMetadata(names: string[], metadata: Record<string, unknown>) {
  let shown: Record<string, unknown> = {}
  for (const name of names) {
    if (!Object.hasOwn(metadata, name)) continue
    const more = { ...shown, [name]: metadata[name] }
    if (Buffer.byteLength(JSON.stringify(more)) > MOST_METADATA_BYTES) break
    shown = more
  }
  return shown
}

const known = cached<LiveSession | undefined>({
  tables: ["user_sessions", "users"],
  keeps: (found) => found !== undefined,
})

const sessionById = (db: Reader, id: string) =>
  isUuid(id) ? known(db, id, async () => (await findSession(db, { id }))[0]) : undefined

/** Whether tokens of the session are accepted in the environment. */
export const isLive = ({ session, user }: LiveSession, environment: AuthEnvironment) =>
  session.environment_id === environment.id &&
  session.revoked_at === null &&
  !isPast(session.expires_at) &&
  user.status === "active"

/** Sessions, each with what tells whether it may be used. */
export const sessionsWithUser = (db: Reader) =>
  db
    .select({
      session: userSessions,
      user: { id: users.id, status: users.status, subscriber_id: users.subscriber_id },
    })
    .from(userSessions)
    .innerJoin(
      users,
      and(eq(users.id, userSessions.user_id), eq(users.project_id, userSessions.project_id)),
    )

const findSession = prepared({ id: userSessions.id }, (db: Reader, slot) =>
  sessionsWithUser(db).where(eq(userSessions.id, slot.id)),
)
