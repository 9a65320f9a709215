import { randomBytes, timingSafeEqual } from "node:crypto"
import { and, eq, gt, isNull } from "drizzle-orm"
import { fail } from "../../core/errors"
import { newId } from "../../core/ids"
import { now, secondsFromNow } from "../../core/time"
import { hashOfToken, newToken } from "../../sign-in/tokens"
import { forUpdate } from "../../store/columns"
import { rowById } from "../../store/rows"
import type { Reader } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import type { AuthEnvironment } from "../environments"
import { requireMethod } from "../methods"
import { requireRedirect } from "../redirects"
import { adapterOf } from "./oauth-adapters"
import { callbackUrl, providerConfig } from "./oauth-providers"
import { oauthFlows } from "./tables"

/** From the start until the provider answers; a person may have to find their password. */
export const FLOW_SECONDS = 600
const CODE_SECONDS = 60

/** RFC 6749, appendix A: what an error and its description consist of. */
const ERROR = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,100}$/
const NOT_IN_ERRORS = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g
const MOST_DESCRIBED = 200

type FlowRow = typeof oauthFlows.$inferSelect
type FlowParts = Pick<AuthParts, "store" | "secrets" | "base_url">

/** What the provider must see again, and later what it sent. */
interface FlowSecrets {
  code_verifier: string
  nonce: string
  code?: string
  /** Of the redirect (RFC 9207). */
  iss?: string | undefined
  /** Where the signed-in user began to link an account. */
  session_id?: string | undefined
}

/** A sign-in that an application begins. */
export interface FlowWish {
  provider: string
  redirect_url: string
  /** The application's own, which it gets back. */
  state?: string | undefined
  /** S256 (RFC 7636): only its maker can exchange the code. */
  code_challenge?: string | undefined
  scopes?: string[]
  /** The value of the cookie of the browser that must come back. */
  cookie?: string
  /** The signed-in user that links an account, in their session. */
  own?: { user_id: string; session_id: string }
}

export const randomText = (): string => randomBytes(32).toString("base64url")

export const s256 = (text: string): string =>
  new Bun.CryptoHasher("sha256").update(text).digest("base64url")

/**
 * Notes a sign-in, and resolves with the page of the provider where it goes on. Throws 403 where the method is off, 404
 * for a provider that is not set up, 422 `invalid_url`, 502 `provider_error`.
 */
export async function beginFlow(
  parts: AuthParts,
  environment: AuthEnvironment,
  wish: FlowWish,
): Promise<{ authorization_url: string; state: string }> {
  const { provider, redirect_url, code_challenge = null, scopes = [], cookie, own } = wish
  requireMethod(environment, "oauth")
  const config = await providerConfig(parts, environment, provider)
  requireRedirect(environment, redirect_url)
  const id = newId()
  const state = stateOf(parts, id)
  const { session_id } = own ?? {}
  const secrets: FlowSecrets = { code_verifier: randomText(), nonce: randomText(), session_id }
  const authorization_url = await adapterOf(provider).authorizationUrl({
    ...{ config, state, scopes, nonce: secrets.nonce },
    redirect_uri: callbackUrl(parts.base_url(), provider),
    code_challenge: s256(secrets.code_verifier),
  })
  const { id: environment_id, project_id } = environment
  const row = {
    ...{ id, project_id, environment_id, provider, redirect_url, code_challenge },
    ...{ user_id: own?.user_id ?? null, client_state: wish.state ?? null },
    cookie_hash: cookie === undefined ? null : hashOfToken(cookie),
    secrets: parts.secrets.seal(JSON.stringify(secrets), contextOf(id)),
    ...{ created_at: now(), expires_at: secondsFromNow(FLOW_SECONDS) },
  }
  await parts.store.tx((tx) => tx.insert(oauthFlows).values(row))
  return { authorization_url, state: wish.state ?? state }
}

const contextOf = (id: string) => `oauth_flows:${id}:secrets`

/** Names the flow at the provider, and proves that this server made the name. */
const stateOf = ({ secrets }: Pick<AuthParts, "secrets">, id: string): string =>
  `${id}.${secrets.mac("oauth state", id).toString("base64url")}`

/** What the provider sent through the browser. */
export interface ProviderAnswer {
  state?: string | undefined
  code?: string | undefined
  error?: string | undefined
  error_description?: string | undefined
  iss?: string | undefined
}

/**
 * Takes the answer of a provider, once, and resolves with the address at which the application goes on. Throws 401
 * for a state that is forged, old or used, of another provider, or of another browser: nobody is sent on then.
 */
export async function arrive(
  parts: FlowParts,
  provider: string,
  { code, error, error_description = "", iss, state = "" }: ProviderAnswer,
  cookie: string | undefined,
): Promise<string> {
  const flow = await flowOf(parts, state)
  if (flow?.provider !== provider || !isOfBrowser(flow, cookie)) return refuseState()
  const client_state = flow.client_state ?? state
  if (code === undefined || error !== undefined) {
    await settle(parts, flow, { used_at: now(), secrets: null })
    const shown = ERROR.test(error ?? "") ? (error ?? "") : "server_error"
    const description = error_description.replace(NOT_IN_ERRORS, " ").slice(0, MOST_DESCRIBED)
    const told = description === "" ? {} : { error_description: description }
    return addressOf(flow, { error: shown, ...told, state: client_state })
  }
  const handed = newToken("code")
  const secrets = { ...opened(parts, flow), code, iss }
  await settle(parts, flow, {
    ...{ code_hash: hashOfToken(handed), code_expires_at: secondsFromNow(CODE_SECONDS) },
    secrets: parts.secrets.seal(JSON.stringify(secrets), contextOf(flow.id)),
  })
  return addressOf(flow, { code: handed, state: client_state })
}

const refuseState = (): never =>
  fail("unauthorized", "This sign-in is not known here, or it is over. Begin again.", {
    reason: "state",
  })

/** The flow that a state names. */
async function flowOf(parts: FlowParts, state: string): Promise<FlowRow | undefined> {
  const [id = ""] = state.split(".", 1)
  const [given, own] = [Buffer.from(state), Buffer.from(stateOf(parts, id))]
  if (given.length !== own.length || !timingSafeEqual(given, own)) return undefined
  return rowById(parts.store.read, oauthFlows, id)
}

const isOfBrowser = ({ cookie_hash }: FlowRow, cookie: string | undefined) =>
  cookie_hash === null || (cookie !== undefined && hashOfToken(cookie) === cookie_hash)

const opened = ({ secrets }: Pick<AuthParts, "secrets">, { id, secrets: sealed }: FlowRow) =>
  (sealed === null ? refuseState() : JSON.parse(secrets.open(sealed, contextOf(id)))) as FlowSecrets

/** Of two answers at once, one counts. */
async function settle({ store }: FlowParts, { id }: FlowRow, change: Partial<FlowRow>) {
  const { code_hash, used_at, expires_at } = oauthFlows
  const open = and(isNull(code_hash), isNull(used_at), gt(expires_at, now()))
  const done = await store.tx((tx) =>
    tx
      .update(oauthFlows)
      .set(change)
      .where(and(eq(oauthFlows.id, id), open))
      .returning(),
  )
  if (done.length === 0) refuseState()
}

function addressOf({ redirect_url }: FlowRow, answer: Record<string, string>): string {
  const url = new URL(redirect_url)
  for (const [name, value] of Object.entries(answer)) url.searchParams.set(name, value)
  return url.href
}

/** What an application shows to exchange a code. */
export interface CodeShown {
  code: string
  state: string
  code_verifier?: string | undefined
}

/** A flow whose code was shown, with what the provider asks for. */
export interface TakenFlow extends FlowSecrets {
  code: string
  /** The signed-in user that links an account. */
  user_id: string | null
}

/**
 * Uses up the code of a redirect, in the environment where its sign-in began. A wrong state or verifier uses it up,
 * too, so that nobody tries again. Throws 401 `unauthorized`.
 */
export async function takeFlow(
  parts: FlowParts,
  environment: AuthEnvironment,
  provider: string,
  { code, state, code_verifier }: CodeShown,
): Promise<TakenFlow> {
  const flow = await parts.store.tx(async (tx) => {
    const found = await openCode(tx, environment, provider, code)
    const spent = { used_at: now(), secrets: null }
    if (found) await tx.update(oauthFlows).set(spent).where(eq(oauthFlows.id, found.id))
    return found
  })
  const is_same = flow && state === (flow.client_state ?? stateOf(parts, flow.id))
  if (!flow || !is_same || !isOfMaker(flow, code_verifier)) return refuseCode()
  const secrets = opened(parts, flow)
  return { ...secrets, code: secrets.code ?? "", user_id: flow.user_id }
}

async function openCode(
  tx: Reader,
  { id, project_id }: AuthEnvironment,
  provider: string,
  code: string,
): Promise<FlowRow | undefined> {
  const open = and(
    eq(oauthFlows.project_id, project_id),
    eq(oauthFlows.environment_id, id),
    eq(oauthFlows.provider, provider),
    eq(oauthFlows.code_hash, hashOfToken(code)),
    isNull(oauthFlows.used_at),
    gt(oauthFlows.code_expires_at, now()),
  )
  const [flow] = await forUpdate(tx.select().from(oauthFlows).where(open))
  return flow
}

/** A verifier without a challenge tells that somebody took the challenge away on the way (RFC 9700, section 2.1.1). */
const isOfMaker = ({ code_challenge }: FlowRow, code_verifier: string | undefined) =>
  code_challenge === null
    ? code_verifier === undefined
    : code_verifier !== undefined && s256(code_verifier) === code_challenge

export const refuseCode = (): never =>
  fail("unauthorized", "The code, its state or its verifier is wrong, or the code is over.", {
    reason: "code",
  })
