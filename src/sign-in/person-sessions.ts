import { and, eq, getTableName, gt, inArray, isNotNull, isNull, lt, type SQL } from "drizzle-orm"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { isPast, millis, millisFrom, now, secondsFromNow } from "../core/time"
import { forUpdate } from "../store/columns"
import type { Store, Tx } from "../store/store"
import { kitTable, type OwnColumns, type OwnerTable } from "./owner-tables"
import type { refreshTokenColumns, sessionColumns } from "./person-columns"
import { hashOfToken, newToken } from "./tokens"

/** A request that was sent twice is no theft. */
const GRACE_MILLISECONDS = 10_000

const MOST_AGENT_CHARACTERS = 300

type SessionColumns = ReturnType<typeof sessionColumns>
type RefreshColumns = ReturnType<typeof refreshTokenColumns>
export type SessionTable = OwnerTable<SessionColumns>
export type RefreshTable = OwnerTable<RefreshColumns>

/** Whose sessions these are, and how long they live. */
export interface SessionOwner<Sessions extends SessionTable, Tokens extends RefreshTable> {
  secrets: Secrets
  sessions: Sessions
  refresh_tokens: Tokens
  /** How long a refresh token works. Each exchange begins it anew. */
  refresh_seconds: number
  /** What the owner's refresh tokens say beside what the kit writes. */
  token_columns: (session: Sessions["$inferSelect"]) => OwnColumns<Tokens, keyof RefreshColumns>
}

/** The person that signs in, and from where. */
interface SignedInAs {
  user_id: string
  ip: string | null
  user_agent: string | null
}

type NewSession<Sessions extends SessionTable> = SignedInAs &
  OwnColumns<Sessions, keyof SessionColumns>

/** A session that lives for some seconds, and that nothing can lengthen. */
export async function openSession<Sessions extends SessionTable>(
  tx: Tx,
  table: Sessions,
  columns: NewSession<Sessions>,
  seconds: number,
): Promise<Sessions["$inferSelect"]> {
  const at = now()
  const row = {
    ...columns,
    id: newId(),
    user_agent: columns.user_agent?.slice(0, MOST_AGENT_CHARACTERS) ?? null,
    created_at: at,
    last_used_at: at,
    expires_at: secondsFromNow(seconds),
    revoked_at: null,
  }
  await tx.insert(kitTable<SessionColumns>(table)).values(row)
  return row
}

/** A session, and the first of its refresh tokens. */
export async function startSession<Sessions extends SessionTable, Tokens extends RefreshTable>(
  tx: Tx,
  owner: SessionOwner<Sessions, Tokens>,
  columns: NewSession<Sessions>,
): Promise<{ session: Sessions["$inferSelect"]; refresh_token: string }> {
  const session = await openSession(tx, owner.sessions, columns, owner.refresh_seconds)
  return { session, refresh_token: await issueRefresh(tx, owner, session) }
}

/** What an exchange brings. Undefined: there is no such token, or its session is over. */
type Exchange<Session> =
  | { session: Session; refresh_token: string }
  /** The token was used before, so that the session, which may be stolen, was ended just now. */
  | { reused: Session }
  | undefined

/**
 * The old token dies with it. A token that was used before ends the whole session, unless it is the
 * same request sent twice: within ten seconds it brings the same new token, or nothing where it died
 * `at_once`. The transaction must be committed also where it says `reused`: otherwise the stolen session lives on.
 */
export async function exchangeRefresh<Sessions extends SessionTable, Tokens extends RefreshTable>(
  tx: Tx,
  owner: SessionOwner<Sessions, Tokens>,
  token: string,
  { among, at_once = false }: { among?: SQL; at_once?: boolean } = {},
): Promise<Exchange<Sessions["$inferSelect"]>> {
  const { token_hash, session_id } = kitTable<RefreshColumns>(owner.refresh_tokens)
  const own = eq(token_hash, hashOfToken(token))
  const its = tx.select({ session_id }).from(owner.refresh_tokens).where(own)
  const { id } = kitTable<SessionColumns>(owner.sessions)
  const session = await lockSession(tx, owner.sessions, and(among, inArray(id, its)))
  return session && exchange(tx, owner, session, own, at_once)
}

/** As `exchangeRefresh` for the token of a session that was not used yet, without knowing it. It dies at once. */
export async function exchangeCurrent<Sessions extends SessionTable, Tokens extends RefreshTable>(
  tx: Tx,
  owner: SessionOwner<Sessions, Tokens>,
  id: string,
): Promise<Exchange<Sessions["$inferSelect"]>> {
  const { session_id, used_at } = kitTable<RefreshColumns>(owner.refresh_tokens)
  const session = await lockSession(tx, owner.sessions, eq(owner.sessions.id, id))
  return session && exchange(tx, owner, session, and(eq(session_id, id), isNull(used_at)), true)
}

/** Of a locked session: so nobody else exchanges a token of it at the same time. */
async function exchange<Sessions extends SessionTable, Tokens extends RefreshTable>(
  tx: Tx,
  owner: SessionOwner<Sessions, Tokens>,
  session: Sessions["$inferSelect"],
  which: SQL | undefined,
  at_once: boolean,
): Promise<Exchange<Sessions["$inferSelect"]>> {
  const tokens = kitTable<RefreshColumns>(owner.refresh_tokens)
  const sessions = kitTable<SessionColumns>(owner.sessions)
  const [found] = await tx.select().from(tokens).where(which)
  if (!found || isPast(found.expires_at)) return undefined

  const context = `${getTableName(tokens)}:${found.token_hash}:successor`
  if (found.used_at) {
    const elapsed = Math.abs(millis() - millisFrom(found.used_at))
    if (elapsed <= GRACE_MILLISECONDS)
      return found.successor === null
        ? undefined
        : { session, refresh_token: owner.secrets.open(found.successor, context) }
    await endSessions(tx, owner.sessions, eq(sessions.id, session.id))
    return { reused: session }
  }
  const refresh_token = await issueRefresh(tx, owner, session)
  const successor = at_once ? null : owner.secrets.seal(refresh_token, context)
  const itself = eq(tokens.token_hash, found.token_hash)
  await tx.update(tokens).set({ used_at: now(), successor }).where(itself)
  const change = { last_used_at: now(), expires_at: secondsFromNow(owner.refresh_seconds) }
  await tx.update(sessions).set(change).where(eq(sessions.id, session.id))
  return { session: { ...session, ...change }, refresh_token }
}

async function issueRefresh<Sessions extends SessionTable, Tokens extends RefreshTable>(
  tx: Tx,
  { refresh_tokens, refresh_seconds, token_columns }: SessionOwner<Sessions, Tokens>,
  session: Sessions["$inferSelect"],
): Promise<string> {
  const token = newToken("refresh")
  await tx.insert(kitTable<RefreshColumns>(refresh_tokens)).values({
    ...token_columns(session),
    token_hash: hashOfToken(token),
    session_id: session.id,
    created_at: now(),
    expires_at: secondsFromNow(refresh_seconds),
  })
  return token
}

/** The session of any of its refresh tokens, also of a used one, while it lives. Locked. */
export async function sessionOf<Sessions extends SessionTable>(
  tx: Tx,
  owner: { sessions: Sessions; refresh_tokens: RefreshTable },
  token: string,
  among?: SQL,
): Promise<Sessions["$inferSelect"] | undefined> {
  const tokens = kitTable<RefreshColumns>(owner.refresh_tokens)
  const own = eq(tokens.token_hash, hashOfToken(token))
  const [found] = await tx.select().from(tokens).where(own)
  return (
    found && lockSession(tx, owner.sessions, and(among, eq(owner.sessions.id, found.session_id)))
  )
}

async function lockSession<Sessions extends SessionTable>(
  tx: Tx,
  table: Sessions,
  which: SQL | undefined,
): Promise<Sessions["$inferSelect"] | undefined> {
  const sessions = kitTable<SessionColumns>(table)
  const mine = and(which, isAlive(sessions))
  const [session] = await forUpdate(tx.select().from(sessions).where(mine))
  return session
}

/** Which sessions live now. */
export const isAlive = ({ revoked_at, expires_at }: SessionTable): SQL | undefined =>
  and(isNull(revoked_at), gt(expires_at, now()))

/** Ends those that `which` selects and that live; it acts on the next request. Returns them. */
export async function endSessions<Sessions extends SessionTable>(
  tx: Tx,
  table: Sessions,
  which: SQL | undefined,
): Promise<Sessions["$inferSelect"][]> {
  const sessions = kitTable<SessionColumns>(table)
  const ending = tx.update(sessions).set({ revoked_at: now() })
  return ending.where(and(which, isAlive(sessions))).returning()
}

/** A successor answers a request that was sent twice; a repeat comes within a minute. */
const SUCCESSOR_SECONDS = 60
const FORGOTTEN_AT_ONCE = 500

/** Forgets some successors that answer nothing any more. */
export async function forgetSuccessors(store: Store, table: RefreshTable): Promise<void> {
  const tokens = kitTable<RefreshColumns>(table)
  const { token_hash, successor, used_at } = tokens
  const stale = and(isNotNull(successor), lt(used_at, secondsFromNow(-SUCCESSOR_SECONDS)))
  const some = await store.read
    .select({ token_hash })
    .from(tokens)
    .where(stale)
    .limit(FORGOTTEN_AT_ONCE)
  if (some.length === 0) return
  const hashes = some.map((row) => row.token_hash)
  await store.tx((tx) =>
    tx.update(tokens).set({ successor: null }).where(inArray(token_hash, hashes)),
  )
}
