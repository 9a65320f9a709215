import type { Static } from "@sinclair/typebox"
import { and, eq, gt, inArray, isNotNull, isNull, lt, ne, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { isPast, millis, millisFrom, now, secondsFromNow } from "../core/time"
import { fieldsOf } from "../lib/record-fields"
import { hashOfToken, newToken } from "../sign-in/tokens"
import { forUpdate } from "../store/columns"
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

/** A request that was sent twice is no theft. */
const GRACE_MILLISECONDS = 10_000

const MOST_AGENT_CHARACTERS = 300

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
type TokenRow = typeof refreshTokens.$inferSelect

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
    const at = now()
    const session: SessionRow = {
      id: newId(),
      user_id: user.id,
      ip: client.ip,
      user_agent: client.user_agent?.slice(0, MOST_AGENT_CHARACTERS) ?? null,
      client_name: client.client_name,
      created_at: at,
      last_used_at: at,
      expires_at: secondsFromNow(REFRESH_SECONDS),
      revoked_at: null,
    }
    await tx.insert(consoleSessions).values(session)
    await tx.update(consoleUsers).set({ last_login_at: at }).where(eq(consoleUsers.id, user.id))
    const after = { client_name: client.client_name, user_agent: session.user_agent }
    await users.recordOwn(tx, user, client.ip, "session.started", { after })
    const refresh_token = await this.#issue(tx, session.id)
    return this.#reply(tx, { ...user, last_login_at: at }, session.id, refresh_token)
  }

  /**
   * The old token dies with it. A token that was used before ends the whole session, unless it is
   * the same request sent twice: within ten seconds it brings the same new token. Throws 401.
   */
  async refresh(token: string, ip: string): Promise<SessionReply> {
    // The end of a stolen session must stay, so it is decided inside and told outside.
    const reply = await this.#parts.store.tx((tx) => this.#rotate(tx, token, ip))
    return reply ?? fail("unauthorized", "The refresh token is not valid any more. Sign in again.")
  }

  /** Signs out. Any token of the session is enough, also a used one; another text does nothing. */
  async end(token: string, ip: string): Promise<void> {
    await this.#parts.store.tx(async (tx) => {
      const { session } = await byToken(tx, hashOfToken(token))
      if (!session || !isAlive(session)) return
      await revoke(tx, await users.find(tx, session.user_id), session.id, ip)
    })
  }

  async #rotate(tx: Tx, token: string, ip: string): Promise<SessionReply | undefined> {
    const token_hash = hashOfToken(token)
    const own = eq(refreshTokens.token_hash, token_hash)
    const { found, session } = await byToken(tx, token_hash)
    if (!found || !session || !isAlive(session) || isPast(found.expires_at)) return undefined
    const [user] = await tx.select().from(consoleUsers).where(eq(consoleUsers.id, session.user_id))
    if (user?.status !== "active") return undefined

    const next = found.used_at ? this.#again(found) : await this.#issue(tx, session.id)
    if (!next) {
      await end(tx, eq(consoleSessions.id, session.id))
      await users.recordOwn(tx, user, ip, "session.reuse_detected", {
        before: toResponse(session, ""),
      })
      return undefined
    }
    if (!found.used_at) {
      const successor = this.#parts.secrets.seal(next, contextOf(token_hash))
      await tx.update(refreshTokens).set({ used_at: now(), successor }).where(own)
      const alive = { last_used_at: now(), expires_at: secondsFromNow(REFRESH_SECONDS) }
      await tx.update(consoleSessions).set(alive).where(eq(consoleSessions.id, session.id))
    }
    return this.#reply(tx, user, session.id, next)
  }

  #again({ token_hash, used_at, successor }: TokenRow): string | undefined {
    const elapsed = millis() - millisFrom(used_at ?? "")
    if (!successor || elapsed > GRACE_MILLISECONDS || elapsed < -GRACE_MILLISECONDS)
      return undefined
    return this.#parts.secrets.open(successor, contextOf(token_hash))
  }

  async #issue(tx: Tx, session_id: string): Promise<string> {
    const token = newToken("refresh")
    await tx.insert(refreshTokens).values({
      token_hash: hashOfToken(token),
      session_id,
      created_at: now(),
      expires_at: secondsFromNow(REFRESH_SECONDS),
    })
    return token
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

const contextOf = (token_hash: string) => `refresh_tokens:${token_hash}:successor`

async function byToken(tx: Tx, token_hash: string) {
  const own = eq(refreshTokens.token_hash, token_hash)
  const [found] = await forUpdate(tx.select().from(refreshTokens).where(own))
  const { id } = consoleSessions
  const [session] = found
    ? await forUpdate(tx.select().from(consoleSessions).where(eq(id, found.session_id)))
    : []
  return { found, session }
}

const isAlive = ({ revoked_at, expires_at }: SessionRow) => !revoked_at && !isPast(expires_at)

/** As lists show a session; `current` is the caller's own. */
export const toResponse = (row: SessionRow, current_id: string) =>
  fieldsOf(SessionRecord, { ...row, current: row.id === current_id })

const alive = (user_id: string): SQL | undefined =>
  and(
    eq(consoleSessions.user_id, user_id),
    isNull(consoleSessions.revoked_at),
    gt(consoleSessions.expires_at, now()),
  )

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
  await end(tx, eq(consoleSessions.id, id))
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
  await end(tx, and(alive(user_id), others))
}

const end = (tx: Tx, which: SQL | undefined) =>
  tx.update(consoleSessions).set({ revoked_at: now() }).where(which)

const PURGED_AT_ONCE = 500

/** A successor answers a request that was sent twice; a repeat comes within a minute. */
const SUCCESSOR_SECONDS = 60

/** Forgets what opens nothing any more, some of each kind. Returns how many rows went. */
export async function purgeSessions(store: Store): Promise<number> {
  await forgetSuccessors(store)
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

async function forgetSuccessors(store: Store) {
  const { token_hash, successor, used_at } = refreshTokens
  const stale = and(isNotNull(successor), lt(used_at, secondsFromNow(-SUCCESSOR_SECONDS)))
  const some = await store.read
    .select({ token_hash })
    .from(refreshTokens)
    .where(stale)
    .limit(PURGED_AT_ONCE)
  if (some.length === 0) return
  const hashes = some.map((row) => row.token_hash)
  await store.tx((tx) =>
    tx.update(refreshTokens).set({ successor: null }).where(inArray(token_hash, hashes)),
  )
}
