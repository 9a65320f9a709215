import { and, eq, type SQL } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { currentPeriod } from "../core/time"
import { emitAll } from "../events/emit"
import type { Caller } from "../identity/caller"
import { fieldsOf } from "../lib/record-fields"
import * as personSessions from "../sign-in/person-sessions"
import { hashOfToken } from "../sign-in/tokens"
import { rowById, rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import type { UserSessionRow } from "./access-tokens"
import { noteActivity } from "./active-users"
import type { AuthParts } from "./auth-parts"
import { endSessions, revoked } from "./end-sessions"
import { type EndUserRow, find, findForUpdate } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { SECOND_FACTOR } from "./factors/factor-challenges"
import { organizationIn } from "./organization-rows"
import { activeOf, type OwnOrganization, organizationsOf, toActive } from "./own-organizations"
import { StartedSession, UserSession } from "./schemas"
import { sessionOwner, tokensFor } from "./sign-in"
import { userRefreshTokens, userSessions, users } from "./tables"
import { deviceOf } from "./user-devices"
import { emitUser } from "./user-events"

interface WantedRefresh {
  refresh_token: string
  /** Where the session moves to. */
  organization_id?: string | undefined
  ip: string
}

/**
 * New tokens for a refresh token, which works once; sent twice within ten seconds it brings the same new one. Used
 * again later it ends the session. Throws 401 for every token that does not work, 400 `user_inactive`, 404 or 403
 * `forbidden` for an organization of which the user is no member, and 403 `mfa_required`, which uses nothing up.
 */
export async function refresh(
  parts: AuthParts,
  environment: AuthEnvironment,
  wanted: WantedRefresh,
) {
  // The end of a stolen session must stay, so it is decided inside and told outside.
  const answer = await parts.store.tx((tx) => rotate(tx, parts, environment, wanted))
  return answer ?? over()
}

const over = () => fail("unauthorized", "The refresh token is not valid any more. Sign in again.")

async function rotate(
  tx: Tx,
  parts: AuthParts,
  environment: AuthEnvironment,
  { refresh_token: token, organization_id, ip }: WantedRefresh,
) {
  const known = await userOf(tx, environment, token)
  if (!known) return undefined
  const { id, project_id } = known
  const user = organization_id === undefined ? known : await findForUpdate(tx, project_id, id)
  if (user.status !== "active") return fail("user_inactive", "This user is not active.")
  const exchange = await personSessions.exchangeRefresh(tx, sessionOwner(parts, environment), token)
  return renewed(tx, parts, { environment, user }, { exchange, organization_id, ip })
}

interface WantedSwitch {
  organization_id: string
  /** Without it the one that the session has is replaced. */
  refresh_token?: string | undefined
  ip: string
}

/**
 * Moves a session of a user to another organization, with new tokens: the refresh token before works no more. Throws as
 * `refresh`, also 401 for the refresh token of another session.
 */
export async function switchOrganization(
  parts: AuthParts,
  { environment, user: { project_id, id }, session_id }: UserInEnvironment & { session_id: string },
  { organization_id, refresh_token: token, ip }: WantedSwitch,
) {
  const answer = await parts.store.tx(async (tx) => {
    const user = await findForUpdate(tx, project_id, id)
    const owner = sessionOwner(parts, environment)
    const among = eq(userSessions.id, session_id)
    const exchange =
      token === undefined
        ? await personSessions.exchangeCurrent(tx, owner, session_id)
        : await personSessions.exchangeRefresh(tx, owner, token, { among, at_once: true })
    return renewed(tx, parts, { environment, user }, { exchange, organization_id, ip })
  })
  return answer ?? over()
}

interface Renewal extends Pick<WantedRefresh, "organization_id" | "ip"> {
  exchange: Awaited<
    ReturnType<typeof personSessions.exchangeRefresh<typeof userSessions, typeof userRefreshTokens>>
  >
}

/** The tokens of an exchange, for the organization where the session lands. Undefined where it is over. */
async function renewed(
  tx: Tx,
  parts: AuthParts,
  { environment, user }: UserInEnvironment,
  { exchange, organization_id, ip }: Renewal,
) {
  if (!exchange) return undefined
  if ("reused" in exchange) {
    const facts = { reason: "token_reuse", ip_address: ip }
    await emitAll(tx, [revoked(environment, user, exchange.reused, facts)])
    return undefined
  }
  const { refresh_token } = exchange
  const organizations = await movedTo(tx, { environment, user }, exchange.session, organization_id)
  const organization = toActive(activeOf(organizations))
  const session = { ...exchange.session, organization_id: organization.id }
  await noteMonth(tx, environment, user)
  const subject = { environment, user, session, organizations }
  return {
    tokens: await tokensFor(tx, parts, subject, refresh_token),
    session: fieldsOf(StartedSession, session),
    organization,
  }
}

/** Whose refresh token it is, also where the session is over. */
async function userOf(
  db: Reader,
  environment: AuthEnvironment,
  token: string,
): Promise<EndUserRow | undefined> {
  const mine = and(
    eq(userRefreshTokens.token_hash, hashOfToken(token)),
    eq(userSessions.environment_id, environment.id),
  )
  const [found] = await db
    .select({ user: users })
    .from(userRefreshTokens)
    .innerJoin(userSessions, eq(userSessions.id, userRefreshTokens.session_id))
    .innerJoin(users, eq(users.id, userSessions.user_id))
    .where(mine)
  return found?.user
}

interface UserInEnvironment {
  environment: AuthEnvironment
  user: EndUserRow
}

/**
 * The session lands in the organization that is asked for, else stays where it is, else is back in Default. Where a
 * second factor is demanded, it needs one; but one that was let in to set one up may stay.
 */
async function movedTo(
  tx: Tx,
  { environment, user }: UserInEnvironment,
  session: UserSessionRow,
  organization_id: string | undefined,
): Promise<OwnOrganization[]> {
  const wanted = organization_id ?? session.organization_id
  const found = await organizationsOf(tx, user, wanted)
  const is_member = found[0]?.id === wanted
  if (!is_member && organization_id) return refuseOrganization(tx, environment, organization_id)
  const landing = is_member
    ? found
    : await organizationsOf(tx, user, environment.default_organization_id)
  const { id, mfa_required } = activeOf(landing)
  const stays = id === session.organization_id
  const lacks_factor = mfa_required && !session.amr.includes(SECOND_FACTOR)
  if (lacks_factor && !(stays && session.lacks_factor)) return refuseFactor()
  if (stays && lacks_factor === session.lacks_factor) return landing
  await tx
    .update(userSessions)
    .set({ organization_id: id, lacks_factor })
    .where(eq(userSessions.id, session.id))
  if (is_member && !stays)
    await tx.update(users).set({ last_organization_id: id }).where(eq(users.id, user.id))
  return landing
}

const refuseFactor = () =>
  fail("mfa_required", "The organization demands a second factor. Prove one, or sign in again.")

/** Throws 404 for an organization that this environment does not have. */
async function refuseOrganization(tx: Tx, environment: AuthEnvironment, id: string) {
  await organizationIn(tx, environment, id)
  const text = "The user is no member of this organization."
  return fail("forbidden", text, { reason: "not_a_member" })
}

/** A renewed session is activity, also without a sign-in. Each month writes once. */
async function noteMonth(tx: Tx, environment: AuthEnvironment, user: EndUserRow): Promise<void> {
  if (user.active_month === currentPeriod()) return
  await noteActivity(tx, environment, await findForUpdate(tx, user.project_id, user.id), {})
}

/** Ends the session of a refresh token, also of a used one. Another text does nothing. */
export const revokeByToken = (
  { store, ...parts }: AuthParts,
  environment: AuthEnvironment,
  { refresh_token, ip }: Pick<WantedRefresh, "refresh_token" | "ip">,
): Promise<void> =>
  store.tx(async (tx) => {
    const among = eq(userSessions.environment_id, environment.id)
    const session = await personSessions.sessionOf(
      tx,
      sessionOwner(parts, environment),
      refresh_token,
      among,
    )
    if (!session) return
    const user = await find(tx, session.project_id, session.user_id)
    const which = eq(userSessions.id, session.id)
    await endSessions(tx, environment, user, { which, reason: "revoked", ip_address: ip })
  })

interface SignOut {
  session_id: string
  /** Every session of the user, not only this one. */
  all: boolean
  ip: string
}

/** Ends the session, or all of them, with one `user.logout`. */
export async function signOut(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  { session_id, all, ip }: SignOut,
): Promise<void> {
  const which = all ? undefined : eq(userSessions.id, session_id)
  const ended = await personSessions.endSessions(tx, userSessions, and(ofUser(user), which))
  if (ended.length === 0) return
  await emitUser(tx, environment, user, "user.logout", { session_id, ip_address: ip })
}

const ofUser = ({ project_id, id }: Pick<EndUserRow, "project_id" | "id">): SQL | undefined =>
  and(eq(userSessions.project_id, project_id), eq(userSessions.user_id, id))

/** The living sessions of a user, newest first. */
export const list = (db: Reader, user: Pick<EndUserRow, "project_id" | "id">) =>
  rowList(db, userSessions, {
    of: ofUser(user),
    owner: user.project_id,
    filter: personSessions.isAlive(userSessions),
    missing: noSession,
  })

/** Throws 404 for a session that is over, or another's. */
export const findSession = async (
  db: Reader,
  user: Pick<EndUserRow, "project_id" | "id">,
  id: string,
): Promise<UserSessionRow> =>
  (await rowById(db, userSessions, id, and(ofUser(user), personSessions.isAlive(userSessions)))) ??
  noSession()

const noSession = () => fail("not_found", "There is no such session.")

/** As lists show a session; `current` is that of the request, if it has one. */
export const toListed = (row: UserSessionRow, current_id: string | null) =>
  fieldsOf(UserSession, {
    ...row,
    current: row.id === current_id,
    device: deviceOf(row.user_agent),
  })

/** The claims of a token of this project, or of the only application that the caller may ask for; undefined for every other text. */
export async function introspect({ tokens }: AuthParts, caller: Caller, token: string) {
  if (!tokens.isOwn(token)) return undefined
  try {
    const { environment, claims, live } = await tokens.prove(token)
    const { application } = caller
    const is_theirs =
      environment.project_id === caller.project_id &&
      (application === null || application.id === environment.application.id)
    return live && is_theirs ? claims : undefined
  } catch (error) {
    if (error instanceof ApiError && error.code === "unauthorized") return undefined
    throw error
  }
}
