import type { Static } from "@sinclair/typebox"
import { and, eq, lt, ne, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { fieldsOf } from "../lib/record-fields"
import {
  endSessions,
  exchangeRefresh,
  forgetSuccessors,
  isAlive,
  sessionOf,
  startSession,
} from "../sign-in/person-sessions"
import { removeSome, rowById, rowList } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { ACCESS_SECONDS, type AccessTokens } from "./access-token"
import { type Session, SessionRecord } from "./schemas"
import {
  consoleSessions,
  consoleUsers,
  deviceCodes,
  mfaChallenges,
  passwordResets,
  refreshTokens,
  throttles,
} from "./tables"
import * as users from "./users"

/** How long a refresh token works. Each exchange begins it anew. */
export const REFRESH_SECONDS = 30 * 86_400

/** From where a person signs in. */
export interface SessionClient {
  ip: string | null
  user_agent: string | null
  /** What a program calls itself; null for a sign-in with a password. */
  client_name: string | null
}

export const clientOf = (call: { ip: string; request: Request }): SessionClient => ({
  ip: call.ip,
  user_agent: call.request.headers.get("user-agent"),
  client_name: null,
})

/** The Session of the contract. */
export type SessionReply = Static<typeof Session>

type SessionRow = typeof consoleSessions.$inferSelect

interface SessionParts {
  store: Store
  secrets: Secrets
  access: AccessTokens
}

/** What people hold once they are signed in: an access token for minutes, a refresh token for weeks. */
export class Sessions {
  readonly #parts: SessionParts

  constructor(parts: SessionParts) {
    this.#parts = parts
  }

  /** Signs the person in. The caller has checked the credentials. */
  async start(tx: Tx, user: users.UserRow, client: SessionClient): Promise<SessionReply> {
    const columns = { ...client, user_id: user.id }
    const { session, refresh_token } = await startSession(tx, this.#owner, columns)
    const { client_name, user_agent, created_at: last_login_at } = session
    await tx.update(consoleUsers).set({ last_login_at }).where(eq(consoleUsers.id, user.id))
    const after = { client_name, user_agent }
    await users.recordOwn(tx, user, client.ip, "session.started", { after })
    return this.#reply(tx, { ...user, last_login_at }, session.id, refresh_token)
  }

  /**
   * The old token dies with it. A token that was used before ends the whole session, unless it is
   * the same request sent twice: within ten seconds it brings the same new token. Throws 401.
   */
  async refresh(token: string, ip: string): Promise<SessionReply> {
    // The end of a stolen session must stay, so it is decided inside and told outside.
    const reply = await this.#parts.store.tx(async (tx) => {
      const exchange = await exchangeRefresh(tx, this.#owner, token)
      if (!exchange) return undefined
      const session = "reused" in exchange ? exchange.reused : exchange.session
      const user = await users.find(tx, session.user_id)
      if ("reused" in exchange) {
        const before = toResponse(session, "")
        await users.recordOwn(tx, user, ip, "session.reuse_detected", { before })
        return undefined
      }
      if (user.status !== "active") return over()
      return this.#reply(tx, user, session.id, exchange.refresh_token)
    })
    return reply ?? over()
  }

  /** Signs out. Any token of the session is enough, also a used one; another text does nothing. */
  async end(token: string, ip: string): Promise<void> {
    await this.#parts.store.tx(async (tx) => {
      const session = await sessionOf(tx, this.#owner, token)
      if (session) await revoke(tx, await users.find(tx, session.user_id), session.id, ip)
    })
  }

  get #owner() {
    return {
      secrets: this.#parts.secrets,
      sessions: consoleSessions,
      refresh_tokens: refreshTokens,
      refresh_seconds: REFRESH_SECONDS,
      token_columns: () => ({}),
    }
  }

  async #reply(tx: Tx, user: users.UserRow, session_id: string, refresh_token: string) {
    return {
      access_token: await this.#parts.access.sign(tx, { user_id: user.id, session_id }),
      refresh_token,
      token_type: "Bearer" as const,
      expires_in: ACCESS_SECONDS,
      user: users.toResponse(user),
      accounts: await users.accountsOf(tx, user.id),
    }
  }
}

const over = () => fail("unauthorized", "The refresh token is not valid any more. Sign in again.")

/** As lists show a session; `current` is the caller's own. */
export const toResponse = (row: SessionRow, current_id: string) =>
  fieldsOf(SessionRecord, { ...row, current: row.id === current_id })

const alive = (user_id: string): SQL | undefined =>
  and(eq(consoleSessions.user_id, user_id), isAlive(consoleSessions))

/** Throws 404. Of this user only, and only while it lives. */
export const find = async (db: Reader, user_id: string, id: string): Promise<SessionRow> =>
  (await rowById(db, consoleSessions, id, alive(user_id))) ?? gone()

const gone = () => fail("not_found", "There is no such session.")

/** Newest first. */
export const list = (db: Reader, user_id: string) =>
  rowList(db, consoleSessions, { of: alive(user_id), missing: gone })

/** Acts on the next request. Throws 404 for a session that is over already. */
export async function revoke(tx: Tx, user: users.UserRow, id: string, ip: string): Promise<void> {
  const before = toResponse(await find(tx, user.id, id), "")
  await endSessions(tx, consoleSessions, eq(consoleSessions.id, id))
  await users.recordOwn(tx, user, ip, "session.revoked", { before })
}

/**
 * Ends every session of a user, or every one but `except`; and those that a program has not fetched
 * yet although they are approved.
 */
export async function revokeAll(tx: Tx, user_id: string, except?: string): Promise<void> {
  const approved = and(eq(deviceCodes.user_id, user_id), eq(deviceCodes.status, "approved"))
  await tx.update(deviceCodes).set({ status: "denied" }).where(approved)
  const others = except ? ne(consoleSessions.id, except) : undefined
  await endSessions(tx, consoleSessions, and(eq(consoleSessions.user_id, user_id), others))
}

const PURGED_AT_ONCE = 500

/** Forgets what opens nothing any more, some of each kind. Returns how many rows went. */
export async function purgeSessions(store: Store): Promise<number> {
  await forgetSuccessors(store, refreshTokens)
  let gone = 0
  const past = now()
  const kinds = [
    { rows: refreshTokens, id: refreshTokens.token_hash, end: refreshTokens.expires_at },
    { rows: consoleSessions, id: consoleSessions.id, end: consoleSessions.expires_at },
    { rows: deviceCodes, id: deviceCodes.id, end: deviceCodes.expires_at },
    { rows: mfaChallenges, id: mfaChallenges.token_hash, end: mfaChallenges.expires_at },
    { rows: passwordResets, id: passwordResets.token_hash, end: passwordResets.expires_at },
    { rows: throttles, id: throttles.subject, end: throttles.ends_at },
  ]
  for (const { rows, id, end } of kinds)
    gone += await removeSome(store, rows, { id, old: lt(end, past), most: PURGED_AT_ONCE })
  return gone
}
