import type { Static } from "@sinclair/typebox"
import { and, desc, eq, inArray, isNull } from "drizzle-orm"
import { fail } from "../core/errors"
import { now } from "../core/time"
import { fieldsOf } from "../lib/record-fields"
import { isAlive, startSession } from "../sign-in/person-sessions"
import type { Reader, Tx } from "../store/store"
import { secondsOf, type TokenSubject } from "./access-tokens"
import { noteActivity } from "./active-users"
import type { AuthParts } from "./auth-parts"
import { endSessions } from "./end-sessions"
import { type EndUserRow, insertUser, type NewEndUser, toResponse } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { awaitFactor, type ChallengeMethod, SECOND_FACTOR } from "./factors/factor-challenges"
import { linkSubscriber } from "./linked-subscriber"
import { requireAllowedDomain } from "./methods"
import { tellOfNewDevice } from "./new-device"
import { activeOf, type OwnOrganization, organizationsOf, toActive } from "./own-organizations"
import { type AuthResultRecord, type SignInAnswer, StartedSession, type Tokens } from "./schemas"
import { userRefreshTokens, userSessions } from "./tables"
import { emitUser } from "./user-events"

/** From where a user signs in. */
export interface UserClient {
  ip: string | null
  user_agent: string | null
}

export const clientOf = (call: { ip: string; request: Request }): UserClient => ({
  ip: call.ip,
  user_agent: call.request.headers.get("user-agent"),
})

/** Somebody that proved their identity. */
export interface ProvenUser {
  environment: AuthEnvironment
  /** Locked by the transaction. */
  user: EndUserRow
  /** The way in, as events say it: `password`, `magic_link`, `passkey`, `google`, `game-center` and the like. */
  provider: string
  /** How they proved it (RFC 8176). */
  amr: string[]
  client: UserClient
  /** The second factor that was asked for, as events say it. */
  mfa_method?: ChallengeMethod
  /** Where they want to be; counts where they are a member. */
  organization_id?: string | undefined
  /** They were made, or became active, in this transaction. */
  is_new?: boolean
}

/**
 * A new user of the environment. Nothing tells of them yet: `completeSignIn` does with `is_new`. Undefined where the
 * address or the number has one already. Throws 403 `forbidden` where the Default organization does not allow the
 * domain of their address.
 */
export async function createUser(
  tx: Tx,
  environment: AuthEnvironment,
  wanted: NewEndUser,
): Promise<EndUserRow | undefined> {
  const user = await insertUser(tx, environment, wanted)
  if (!user) return undefined
  requireAllowedDomain(environment.allowed_email_domains, user.email)
  return linkSubscriber(tx, user)
}

/**
 * The end of every way in: a session with its tokens, what is counted, and the event. Throws 400 `user_inactive`, 403
 * `forbidden` while the address of a password has to be verified, and 402 `payment_required` for a new user too many.
 */
export async function completeSignIn(
  tx: Tx,
  parts: AuthParts,
  proven: ProvenUser,
): Promise<Static<typeof SignInAnswer>> {
  const { user, is_new = false } = proven
  if (user.status !== "active") return fail("user_inactive", "This user is not active.")
  if (mustVerify(proven)) return is_new ? admitUnverified(tx, proven) : refuseUnverified()
  const organizations = await organizationsIn(tx, proven)
  if (asksForFactor(proven, activeOf(organizations))) return awaitFactor(tx, proven)
  return startSignedIn(tx, parts, proven)
}

const mustVerify = ({ environment, user, provider }: ProvenUser) =>
  environment.settings.require_verified_email && provider === "password" && !user.email_verified

const refuseUnverified = () =>
  fail("forbidden", "Verify the email address first.", { reason: "email_not_verified" })

/** They are there, but they get no session before their address is verified. */
async function admitUnverified(tx: Tx, proven: ProvenUser): Promise<AuthResultRecord> {
  const { environment, provider, client } = proven
  const user = await noteActivity(tx, environment, proven.user, { is_new: true })
  const answer = await answerUnverified(tx, { ...proven, user })
  const facts = { provider, ip_address: client.ip, organization_id: answer.organization.id }
  await emitUser(tx, environment, user, "user.created", facts)
  return answer
}

/** What somebody is answered whose address must be verified before they get a session. */
export async function answerUnverified(tx: Tx, proven: ProvenUser): Promise<AuthResultRecord> {
  const organization = toActive(activeOf(await organizationsIn(tx, proven)))
  const { user, is_new = false } = proven
  return { user: toResponse(user), tokens: null, session: null, organization, is_new }
}

/** A user with no second factor gets in, and may then do little but set one up. */
const asksForFactor = ({ environment, user, amr }: ProvenUser, landing: OwnOrganization) =>
  user.mfa_methods.length > 0 &&
  !amr.includes(SECOND_FACTOR) &&
  (environment.settings.mfa.policy !== "off" || landing.mfa_required)

/** After every factor that is asked for. */
export async function startSignedIn(
  tx: Tx,
  parts: AuthParts,
  proven: ProvenUser,
): Promise<AuthResultRecord> {
  const { environment, provider, client, amr, mfa_method, is_new = false } = proven
  const organizations = await organizationsIn(tx, proven)
  const landing = activeOf(organizations)
  const organization = toActive(landing)
  const at = now()
  const seen = { is_new, last_login_at: at, last_organization_id: organization.id }
  const active = await noteActivity(tx, environment, proven.user, seen)
  const user = active.subscriber_id === null ? await linkSubscriber(tx, active) : active
  await makeRoom(tx, environment, user)
  const { session, refresh_token } = await startSession(tx, sessionOwner(parts, environment), {
    ...{ user_id: user.id, project_id: user.project_id, environment_id: environment.id },
    ...{ application_id: environment.application.id, organization_id: organization.id },
    ...{ ...client, amr, auth_time: at, act: null },
    lacks_factor: landing.mfa_required && !amr.includes(SECOND_FACTOR),
  })
  const facts = { provider, ip_address: client.ip, session_id: session.id, mfa_method }
  const type = is_new ? "user.created" : "user.login"
  await emitUser(tx, environment, user, type, { ...facts, organization_id: organization.id })
  await tellOfNewDevice(tx, session)
  const subject = { environment, user, session, organizations }
  return {
    user: toResponse(user),
    tokens: await tokensFor(tx, parts, subject, refresh_token),
    session: fieldsOf(StartedSession, session),
    organization,
    is_new,
  }
}

/** The kit's sessions, as those of an environment. */
export const sessionOwner = (
  { secrets }: Pick<AuthParts, "secrets">,
  { application }: AuthEnvironment,
) => ({
  secrets,
  sessions: userSessions,
  refresh_tokens: userRefreshTokens,
  refresh_seconds: application.refresh_token_duration_days * 86_400,
  token_columns: ({ project_id }: typeof userSessions.$inferSelect) => ({ project_id }),
})

/** A pair of tokens, as answers have them. */
export const tokensFor = async (
  tx: Tx,
  { tokens }: Pick<AuthParts, "tokens">,
  subject: TokenSubject,
  refresh_token: string,
): Promise<Static<typeof Tokens>> => ({
  access_token: await tokens.sign(tx, subject),
  refresh_token,
  token_type: "Bearer",
  expires_in: secondsOf(subject),
})

/** The organization that is asked for, else the last one, else Default; of those where the user is a member. */
async function organizationsIn(
  db: Reader,
  { environment, user, organization_id }: ProvenUser,
): Promise<OwnOrganization[]> {
  for (const wanted of [organization_id, user.last_organization_id]) {
    const found = wanted ? await organizationsOf(db, user, wanted) : []
    if (found[0] && found[0].id === wanted) return found
  }
  return organizationsOf(db, user, environment.default_organization_id)
}

/** Living sessions of a user where the environment says no number: more are a program that never signs out. */
const MOST_SESSIONS = 100

/** Ends the oldest sessions, so that one more is within the limit. */
async function makeRoom(tx: Tx, environment: AuthEnvironment, user: EndUserRow): Promise<void> {
  const most = environment.settings.session.max_sessions ?? MOST_SESSIONS
  const { id, user_id, act } = userSessions
  const living = and(eq(user_id, user.id), isNull(act), isAlive(userSessions))
  const rows = tx.select({ id }).from(userSessions).where(living).orderBy(desc(id))
  const ids = (await rows.limit(MOST_SESSIONS).offset(most - 1)).map((row) => row.id)
  if (ids.length === 0) return
  await endSessions(tx, environment, user, { which: inArray(id, ids), reason: "max_sessions" })
}
