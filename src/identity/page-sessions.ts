import { fail } from "../core/errors"
import type { Store } from "../store/store"
import { ACCESS_SECONDS, type AccessTokens } from "./access-token"
import { authenticateId } from "./authenticate"
import { isOfLink, type LinkExchange, type LinkSessions } from "./link-sessions"
import type { SessionReply } from "./sessions"
import type { SignInParts } from "./sign-in"
import type { UserResponse, UserSeat } from "./users"

export interface PageSessionParts extends SignInParts {
  store: Store
  access: AccessTokens
  links: LinkSessions
  /** The public address of this server. */
  base_url: () => string
}

/** What a page may know: everything but the token of its cookie, which no script reads. */
interface PageSession {
  access_token: string
  expires_in: number
  /** Null where the page has the rights of a key. */
  user: UserResponse | null
  accounts: UserSeat[]
  /** Of that key; null for a person: the page lets the person choose. */
  project_id: string | null
}

/** A session, and the token that the cookie of the page keeps for the next exchange. */
export interface KeptSession {
  session: PageSession
  token: string
}

/** The session of a person, as a page gets it. */
export const ofPerson = ({
  refresh_token,
  token_type: _,
  ...reply
}: SessionReply): KeptSession => ({
  session: { ...reply, project_id: null },
  token: refresh_token,
})

/**
 * Signs in with the code of a link. Throws 401 `unauthorized` for a code that was used, is old, or was never
 * given out.
 */
export const redeem = (parts: PageSessionParts, code: string, ip: string): Promise<KeptSession> =>
  ofLink(parts, parts.links.redeem(code), ip)

/** The old token dies with it, as in `Sessions.refresh`. Throws 401 `unauthorized`. */
export async function exchange(
  parts: PageSessionParts,
  token: string | undefined,
  ip: string,
): Promise<KeptSession> {
  if (token === undefined) fail("unauthorized", "This browser is not signed in.")
  if (isOfLink(token)) return ofLink(parts, parts.links.exchange(token), ip)
  return ofPerson(await parts.sessions.refresh(token, ip))
}

/** Ends the session of the token. For a token that opens nothing this does nothing. */
export async function leave(
  { links, sessions }: PageSessionParts,
  token: string | undefined,
  ip: string,
): Promise<void> {
  if (token === undefined) return
  if (isOfLink(token)) links.end(token)
  else await sessions.end(token, ip)
}

/** Throws 401 where the key was revoked meanwhile, or its project is being deleted. */
async function ofLink(
  { store, access }: PageSessionParts,
  { session_id, key_id, project_id, token }: LinkExchange,
  ip: string,
): Promise<KeptSession> {
  await authenticateId(store.read, key_id, ip)
  const access_token = await store.tx((tx) => access.sign(tx, { key_id, session_id }))
  const session = { access_token, expires_in: ACCESS_SECONDS, user: null, accounts: [], project_id }
  return { session, token }
}
