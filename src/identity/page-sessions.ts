import type { Static } from "@sinclair/typebox"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { millis } from "../core/time"
import { hashOfToken, newToken } from "../sign-in/tokens"
import type { Store } from "../store/store"
import { ACCESS_SECONDS, type AccessTokens } from "./access-token"
import { authenticateId } from "./authenticate"
import type { SignInParts } from "./console-sign-in"
import type { PageSession } from "./schemas"
import type { SessionReply } from "./sessions"

export interface PageSessionParts extends SignInParts {
  store: Store
  access: AccessTokens
  links: LinkSessions
  base_url: () => string
}

/** A session, and the token that the cookie of the page keeps for the next exchange. */
export interface KeptSession {
  session: Static<typeof PageSession>
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

/** A link that lies in a terminal for longer opens nothing any more. */
export const LINK_SECONDS = 600

/** As long as the session of a person; each exchange begins it anew. */
const SESSION_SECONDS = 30 * 86_400

/** The same request sent twice, by two tabs for example, gets the same token. */
const GRACE_MILLISECONDS = 10_000

const MOST_LINKS = 20
const MOST_SESSIONS = 20

/** The key whose rights a link gives, and the project of that key. */
interface LinkedKey {
  key_id: string
  project_id: string
}

interface LinkSession extends LinkedKey {
  id: string
  /** Of the token that works now. */
  token_hash: string
  /** What replaced a token a few seconds ago, by the hash of that token. */
  successors: Map<string, { token: string; at: number }>
  ends: number
}

/** A session, and the token for its next exchange. */
interface LinkExchange extends LinkedKey {
  session_id: string
  token: string
}

/**
 * Sign-ins by a link that works once: the person at the terminal of `up` has the rights of its key in the
 * browser, too. They live in the memory of this process, so that a restart ends them all.
 */
export class LinkSessions {
  /** By the hash of the code. */
  readonly #links = new Map<string, LinkedKey & { ends: number }>()
  readonly #sessions = new Map<string, LinkSession>()
  #own: (LinkedKey & { url: string }) | undefined

  /** From now on links to this address are given out, with the rights of this key. */
  open(key: LinkedKey, url: string): void {
    this.#own = { ...key, url }
  }

  /**
   * The URL of a new link: for 10 minutes, and once. The code stands in the fragment, which no browser
   * sends, so that no log and no referrer has it. Throws 409 where no key was opened.
   */
  newLink(): string {
    const message =
      "This server gives out no links, because `belfry serve` runs it. Sign in with email and password."
    const { url, ...key } = this.#own ?? fail("conflict", message)
    const code = newToken("link")
    keep(this.#links, hashOfToken(code), { ...key, ends: secondsFrom(LINK_SECONDS) }, MOST_LINKS)
    return `${url}/#link=${code}`
  }

  /** Throws 401 for a code that was used, is old, or was never given out. */
  redeem(code: string): LinkExchange {
    const hash = hashOfToken(code)
    const link = this.#links.get(hash)
    this.#links.delete(hash)
    if (!link || link.ends <= millis()) return refuseLink()
    const id = newId()
    const token = tokenOf(id)
    const { key_id, project_id } = link
    const session: LinkSession = {
      ...{ id, key_id, project_id, successors: new Map() },
      token_hash: hashOfToken(token),
      ends: secondsFrom(SESSION_SECONDS),
    }
    keep(this.#sessions, id, session, MOST_SESSIONS)
    return { session_id: id, key_id, project_id, token }
  }

  /**
   * The old token dies with it. One that was used before ends the session, unless it is the same request
   * sent twice: within ten seconds it brings the same new token. Throws 401.
   */
  exchange(token: string): LinkExchange {
    const session = this.#find(idIn(token)) ?? refuseSession()
    return { ...this.#shown(session), token: this.#successor(session, hashOfToken(token)) }
  }

  /** Throws 401 where no session of that key lives. */
  require({ session_id, key_id }: { session_id: string; key_id: string }): void {
    if (this.#find(session_id)?.key_id !== key_id) refuseSession()
  }

  /** Signs out. A token of the session is enough, whether it was used or not. */
  end(token: string): void {
    this.#sessions.delete(idIn(token) ?? "")
  }

  #find(session_id: string | undefined): LinkSession | undefined {
    const session = this.#sessions.get(session_id ?? "")
    return session && session.ends > millis() ? session : undefined
  }

  #shown({ id: session_id, key_id, project_id }: LinkSession) {
    return { session_id, key_id, project_id }
  }

  #successor(session: LinkSession, hash: string): string {
    const { successors } = session
    const at = millis()
    for (const [old, { at: used_at }] of successors)
      if (Math.abs(at - used_at) > GRACE_MILLISECONDS) successors.delete(old)
    const again = successors.get(hash)
    if (again) return again.token
    if (hash !== session.token_hash) {
      this.#sessions.delete(session.id)
      return refuseSession()
    }
    const token = tokenOf(session.id)
    successors.set(hash, { token, at })
    session.token_hash = hashOfToken(token)
    session.ends = secondsFrom(SESSION_SECONDS)
    return token
  }
}

const secondsFrom = (seconds: number) => millis() + seconds * 1000

/** The newest ones stay. */
function keep<Value>(all: Map<string, Value>, key: string, value: Value, most: number): void {
  all.set(key, value)
  const [oldest] = all.keys()
  if (all.size > most && oldest !== undefined) all.delete(oldest)
}

/** The token names its session, so that one that was used long ago still ends it. */
const tokenOf = (session_id: string) => `${newToken("page")}${session_id.replaceAll("-", "")}`

const ID_AT_END = /^belfry_page_.{43}(.{8})(.{4})(.{4})(.{4})(.{12})$/

/** Undefined for a text that is no token of a session by a link. */
const idIn = (token: string) => ID_AT_END.exec(token)?.slice(1).join("-")

/** Whether a token is of a session by a link, and not of a person. Proves nothing. */
const isOfLink = (token: string): boolean => idIn(token) !== undefined

const refuseLink = () =>
  fail(
    "unauthorized",
    "This link was used already, is older than 10 minutes, or is of an earlier start. `belfry open` prints a new one.",
    { reason: "link_not_valid" },
  )

const refuseSession = () =>
  fail(
    "unauthorized",
    "The session of this page is over. Sign in again; `belfry open` prints a new link.",
  )
