import type { Components } from "../client/components"
import { now } from "./clock"
import { keep, kept, noteSignedIn } from "./kept"
import { type Observable, observable } from "./observable"
import { RequestError, reach, refusalOf } from "./requests"

interface TokenHolder {
  access_token: string
  user: Components["ConsoleUser"] | null
  accounts: Components["Session"]["accounts"]
  /** Of the key whose rights a link gave; null for a person, because people choose one. */
  project_id: string | null
}

/** The person or the key that works here. The token is in memory alone: it ends with the page. */
export type PageSession =
  | { kind: "unknown" }
  | { kind: "signed_out" }
  | { kind: "key"; key: string }
  /** It ends by the clock of this device. */
  | ({ kind: "token"; expires_at_ms: number } & TokenHolder)

export const session: Observable<PageSession> = observable<PageSession>({ kind: "unknown" })

/** Where a person works. */
interface ChosenProject {
  id: string
  /** People with several accounts name it as well. */
  account_id: string
}

/** The project that requests of a person name; a key has only one, and null stands here. */
export const project: Observable<ChosenProject | null> = observable<ChosenProject | null>(
  keptProject(),
)

/** Seconds before its end at which a token is renewed. */
const EARLY_MILLISECONDS = 60_000

interface PageSessionBody extends TokenHolder {
  expires_in: number
}

interface Challenge {
  mfa_required: true
  mfa_challenge: { token: string }
}

/** What a sign-in still needs, or undefined when it is done. */
export type NextStep = { challenge: string } | undefined

/**
 * Finds the session of this page: the code of a one-time link, the key of this tab, or the cookie. Throws for a
 * link that is not valid.
 */
export async function beginSession(link_code: string | undefined): Promise<void> {
  const key = kept("key")
  if (link_code !== undefined) {
    // Where the link fails, an older session of this browser may still hold.
    const failed = await redeem(link_code).catch((error: unknown) => error)
    if (failed === undefined) return
    await resume()
    throw failed
  }
  if (key !== undefined) session.set({ kind: "key", key })
  else await resume()
}

async function redeem(code: string): Promise<undefined> {
  begin(await ask<PageSessionBody>("POST", "/session/link", { code }))
}

/** The session is in the place of a key. */
function begin(found: PageSessionBody): void {
  keep("key", undefined) // a reload would go back to it
  take(found)
}

async function resume(): Promise<void> {
  try {
    if (!(await exchange())) session.set({ kind: "signed_out" })
  } catch (error) {
    // Requests wait until the session is known, and those that need no credential go on.
    if (session.value.kind === "unknown") session.set({ kind: "signed_out" })
    throw error
  }
}

/** Throws RequestError, for a wrong password, say. */
export async function signIn(email: string, password: string): Promise<NextStep> {
  const found = await ask<PageSessionBody | Challenge>("POST", "/session", { email, password })
  if ("mfa_required" in found) return { challenge: found.mfa_challenge.token }
  begin(found)
  return undefined
}

export async function signInWithCode(challenge: string, code: string): Promise<void> {
  begin(await ask<PageSessionBody>("POST", "/session/mfa", { token: challenge, code }))
}

/** Holds the key for this tab, if the server knows it. */
export async function signInWithKey(key: string): Promise<void> {
  const answer = await send("GET", "/v1/mailbox?per_page=1", undefined, { "x-api-key": key })
  // A key without this scope is a key all the same.
  if (!answer.ok && answer.status !== 403) throw refusalOf(answer.status, await answer.text())
  keep("key", key)
  project.set(null)
  session.set({ kind: "key", key })
}

let ends = new AbortController()

/** Aborted when the person signs out: what was asked for in their name is dropped. */
export const sessionSignal = (): AbortSignal => ends.signal

let leaving: Promise<void> | undefined

/**
 * Ends the session on the server, and then forgets it here. `onEnded` runs between the two. Throws RequestError where
 * the server does not end it: the person is signed in as before, and the page has to say so. Requests wait meanwhile.
 */
export async function signOut(onEnded: () => void = () => {}): Promise<void> {
  leaving ??= endSession().finally(() => {
    leaving = undefined
  })
  await leaving
  onEnded()
  forgetSession()
}

async function endSession(): Promise<void> {
  await renewal?.catch(() => undefined) // its answer brings a cookie, which must not come last
  if (session.value.kind === "token") await ask("DELETE", "/session")
}

function forgetSession(): void {
  // The way out of a key ends no session that the browser has beside it.
  if (session.value.kind === "token") noteSignedIn(false)
  for (const what of ["key", "project", "account"] as const) keep(what, undefined)
  project.set(null)
  session.set({ kind: "signed_out" })
  ends.abort()
  ends = new AbortController()
}

/** The project that later requests name. */
export function chooseProject({ id, account_id }: ChosenProject): void {
  keep("project", id)
  keep("account", account_id)
  project.set({ id, account_id })
}

function keptProject(): ChosenProject | null {
  const id = kept("project")
  const account_id = kept("account")
  return id && account_id ? { id, account_id } : null
}

/** Resolves as soon as it is known whether somebody is signed in. */
function knownSession(): Promise<void> {
  if (session.value.kind !== "unknown") return Promise.resolve()
  return new Promise((resolve) => {
    const stop = session.subscribe(() => {
      stop()
      resolve()
    })
  })
}

/**
 * The headers that prove the caller. Waits until the session is known, so that pages show before that, and
 * renews a token that is about to end.
 */
export async function credential(): Promise<Record<string, string>> {
  await knownSession()
  await leaving?.catch(() => undefined)
  const { value } = session
  if (value.kind === "key") return { "x-api-key": value.key }
  if (value.kind !== "token") return {}
  const is_old = value.expires_at_ms - EARLY_MILLISECONDS < now()
  if (is_old) await renewCredential()
  const renewed = session.value
  if (renewed.kind !== "token") return {}
  const named = renewed.user === null ? null : project.value
  return {
    authorization: `Bearer ${renewed.access_token}`,
    ...(named && { "x-project-id": named.id, "x-account-id": named.account_id }),
  }
}

/** What a WebSocket names in its subprotocols, where it cannot send headers. */
export async function bearerToken(): Promise<string | undefined> {
  await credential()
  const { value } = session
  if (value.kind === "key") return value.key
  return value.kind === "token" ? value.access_token : undefined
}

let renewal: Promise<boolean> | undefined

/** Resolves to whether there is a new token. All callers that wait share one exchange. */
export async function renewCredential(): Promise<boolean> {
  await leaving?.catch(() => undefined)
  if (session.value.kind !== "token") return false
  renewal ??= exchange()
    .then((renewed) => {
      if (!renewed) session.set({ kind: "signed_out" })
      return renewed
    })
    .finally(() => {
      renewal = undefined
    })
  return renewal
}

/** The cookie for an access token. False where the browser is not signed in. */
async function exchange(): Promise<boolean> {
  try {
    take(await ask<PageSessionBody>("POST", "/session/token", {}))
    return true
  } catch (error) {
    const is_over = error instanceof RequestError && [401, 403, 404].includes(error.status)
    if (!is_over) throw error
    noteSignedIn(false)
    return false
  }
}

function take({ expires_in, ...found }: PageSessionBody): void {
  const expires_at_ms = now() + expires_in * 1000
  if (found.user && project.value === null) project.set(keptProject())
  noteSignedIn(true)
  session.set({ kind: "token", expires_at_ms, ...found })
}

async function ask<Data>(method: string, path: string, body?: object): Promise<Data> {
  const answer = await send(method, path, body)
  const text = await answer.text()
  if (!answer.ok) throw refusalOf(answer.status, text)
  return (JSON.parse(text) as { data: Data }).data
}

/** Only this page can set the header: a form of another site cannot (CSRF). */
async function send(
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Response> {
  return reach(path, {
    method,
    headers: { "x-belfry-csrf": "1", "content-type": "application/json", ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
}
