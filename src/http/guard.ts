import { ApiError, type ErrorCode, fail } from "../core/errors"
import { log } from "../core/log"
import { millis } from "../core/time"
import type { Bearer, UserBearer } from "../identity/access-token"
import * as apiKeys from "../identity/api-keys"
import { authenticate, authenticateId, refuse } from "../identity/authenticate"
import { type AllowedOrigins, type Caller, confinedTo, nobody } from "../identity/caller"
import * as consoles from "../identity/console-caller"
import { isWithin, subscriberOf } from "../lib/ip-ranges"
import type { Store, Tx } from "../store/store"
import { authorize, mayStayOutside, needOf } from "./authorize"
import { requireOrigin } from "./cors"
import { BY_ADDRESS, type Quota, type RateLimits } from "./rate-limits"
import type { AnyRoute } from "./route"
import {
  asked,
  credentialOf,
  isKey,
  type ShownCredentials,
  shownCredentials,
} from "./shown-credentials"

const TOUCH_MILLISECONDS = 60_000
const MOST_TOUCHED = 10_000

/** Of a console user on routes that belong to no account. */
const USER_PER_MINUTE = 600

/** Verifies an access token of the console or of a page; throws 401 for every other text. */
type VerifyAccess = (token: string) => Promise<Bearer>

/** What the token of a subscriber or of an end user tells. */
export interface TokenBearer {
  /** Of the project or the environment that the token is from, also where the token is over by now. */
  allowed_origins: AllowedOrigins
  /** Undefined where the token is over, and where its bearer is gone or blocked. */
  caller: Caller | undefined
}

/** Tokens of one kind of program in a browser. */
export interface BrowserTokens {
  /** Whether the text names this server as the one that made it for such a program. Proves nothing. */
  isOwn(token: string): boolean
  /** Throws 401 for a token that is not of this server's making. */
  identify(token: string, ip: string): Promise<TokenBearer>
}

/** What proves an application, or only names it, and what its users send. */
export interface ApplicationCredentials {
  user_tokens: BrowserTokens
  /** Throws 401 for a key that no application has. */
  identifyKey(public_key: string, ip: string): Promise<NamedApplication>
  /** A caller that is confined to its application. Throws 401. */
  identifySecret(secret: string, ip: string): Promise<Caller>
  /** Records the last use of a public key. */
  touch(tx: Tx, key_id: string): Promise<unknown>
}

/** The caller of a public key, and the key. */
export interface NamedApplication {
  caller: Caller
  public_key_id: string
}

/** How the guard verifies what a request shows: of people, subscribers, applications and end users. */
export interface CredentialVerifiers {
  verifyAccess: VerifyAccess
  inbox_tokens: BrowserTokens
  applications: ApplicationCredentials
}

/** A request on its way through the checks. */
export interface Admission {
  route: AnyRoute
  request: Request
  params: Record<string, string>
  ip: string
  /** These are set as soon as they are known, so that a refusal can tell of them. */
  caller?: Caller
  quota?: Quota
  allowed_origins?: AllowedOrigins | null
}

/** Decides which callers are let in: credential 401, address 403, account 403, rate 429, then scope 403. */
export class Guard {
  readonly #store: Store
  readonly #limits: RateLimits
  readonly #verifiers: CredentialVerifiers
  readonly #touched = new Map<string, number>()

  constructor(store: Store, limits: RateLimits, verifiers: CredentialVerifiers) {
    this.#store = store
    this.#limits = limits
    this.#verifiers = verifiers
  }

  /** Lets the request in with its caller and its quota, or throws. */
  async admit(asking: Admission): Promise<void> {
    const known = await this.#counted(asking.ip, () => this.#identify(asking))
    const { caller } = known
    asking.caller = caller
    asking.allowed_origins = caller.allowed_origins
    const window = windowOf(caller)
    asking.quota = this.#limits.peek(...window)
    refuseAddress(caller)
    if (!asking.route.any_origin) requireOrigin(asking.request, caller.allowed_origins)
    refuseAccount(caller)
    asking.quota = await this.#limits.take(...window)
    refuseDelivery(asking)
    const in_project = known.settle ? await known.settle() : caller
    authorize(in_project, asking.route, asking.params)
    asking.caller = in_project
    this.#touch(in_project, known.public_key_id)
  }

  /** For callers that speak another protocol: the checks of `admit` for an API key, but for its window. */
  async admitKey(key: string, ip: string, scope: string): Promise<Caller> {
    const caller = await this.#counted(ip, () => authenticate(this.#store.read, key, ip))
    refuseAddress(caller)
    refuseAccount(caller)
    authorize(caller, { scope, callers: ["key"] }, {})
    this.#touch(caller)
    return caller
  }

  /** Counts one request of the caller. Throws 429 `rate_limit_exceeded`. */
  countRequest = (caller: Caller): Quota | Promise<Quota> => this.#limits.take(...windowOf(caller))

  /** Whether an open connection would still be let in. Counts and records nothing. */
  async stillAdmits(asking: Admission): Promise<boolean> {
    try {
      const known = await this.#identify(asking)
      refuseAddress(known.caller)
      requireOrigin(asking.request, known.caller.allowed_origins)
      refuseAccount(known.caller)
      const in_project = known.settle ? await known.settle() : known.caller
      authorize(in_project, asking.route, asking.params)
      return true
    } catch (error) {
      if (error instanceof ApiError) return false
      throw error
    }
  }

  /**
   * For routes without a credential. Some have a credential in the path, and some recognize a person
   * by an access token.
   */
  async admitAnybody(asking: Admission): Promise<void> {
    const { route, params, ip } = asking
    const { method, path, per_minute } = route
    const quota = per_minute
      ? await this.#limits.takeEntry(ip, per_minute)
      : this.#limits.takePublic(ip, `${method} ${path}`)
    if (route.prove) await this.#counted(ip, async () => route.prove?.(params))
    const credential = route.callers.includes("console") ? credentialOf(asking) : undefined
    const is_nobody = credential === undefined || isKey(credential)
    const bearer = is_nobody ? undefined : await this.#counted(ip, () => this.#bearer(credential))
    const is_person = bearer && "user_id" in bearer
    asking.caller = is_person
      ? (await this.#counted(ip, () => this.#person(bearer, ip))).caller
      : nobody(ip)
    asking.quota = quota
  }

  /** Only what fails is counted and refused: a good credential behind the same address goes on. */
  #counted<Result>(ip: string, identify: () => Result | Promise<Result>): Result | Promise<Result> {
    const fail = (error: unknown): never => {
      if (isUnauthorized(error)) this.#limits.countFailure(ip)
      throw error
    }
    try {
      const found = identify()
      return found instanceof Promise ? found.catch(fail) : found
    } catch (error) {
      return fail(error)
    }
  }

  /** Almost every request has a key and nothing else, which is known at once. */
  #identify(asking: Admission): Known | Promise<Known> {
    const shown = shownCredentials(asking)
    const { secret, public_key, credential } = shown
    const has_others = secret !== null || public_key !== null || credential === undefined
    return has_others || !isKey(credential)
      ? this.#identifyAny(asking, shown)
      : this.#ofKey(credential, asking.ip)
  }

  #ofKey(key: string, ip: string): Known | Promise<Known> {
    const caller = authenticate(this.#store.read, key, ip)
    return caller instanceof Promise ? caller.then(complete) : complete(caller)
  }

  /** A public key beside another credential only names the application. */
  async #identifyAny(
    asking: Admission,
    { secret, public_key, credential }: ShownCredentials,
  ): Promise<Known> {
    const { ip } = asking
    const { applications } = this.#verifiers
    if (secret !== null && credential !== undefined) return refuse()
    const named = public_key === null ? undefined : await applications.identifyKey(public_key, ip)
    const known =
      secret !== null
        ? complete(await applications.identifySecret(secret, ip))
        : credential !== undefined && (await this.#ofCredential(credential, asking))
    if (!named) return known || refuse()
    return known ? beside(known, named) : named
  }

  async #ofCredential(credential: string, asking: Admission): Promise<Known> {
    const { ip } = asking
    if (isKey(credential)) return this.#ofKey(credential, ip)
    const { inbox_tokens, applications } = this.#verifiers
    const issuer = [inbox_tokens, applications.user_tokens].find((one) => one.isOwn(credential))
    if (issuer) {
      const bearer = await issuer.identify(credential, ip)
      asking.allowed_origins = bearer.allowed_origins
      return complete(bearer.caller ?? refuse())
    }
    const bearer = await this.#bearer(credential)
    if ("key_id" in bearer) {
      return complete(await authenticateId(this.#store.read, bearer.key_id, ip))
    }
    return this.#inAccount(await this.#person(bearer, ip), asking)
  }

  async #bearer(token: string): Promise<Bearer> {
    return await this.#verifiers.verifyAccess(token).catch((error) => {
      if (isUnauthorized(error)) return refuse() // in the words for every credential
      throw error
    })
  }

  #person = async (bearer: UserBearer, ip: string): Promise<consoles.SignedIn> =>
    (await consoles.person(this.#store.read, bearer, ip)) ?? refuse()

  /**
   * The account decides the rate limit, and whether its callers are answered at all. A wrong choice
   * of account or project is told after these checks.
   */
  #inAccount(person: consoles.SignedIn, asking: Admission): Known {
    const { route, request, params } = asking
    const need = needOf(route)
    const headers = request.headers
    const { of_deleted } = route
    const account_id = asked(asking, "account_id") ?? headers.get("x-account-id")
    const wanted = { need, of_deleted, account_id, project_id: null }
    const caller = attempt(() => consoles.inAccount(person, wanted))
    if (caller instanceof Error)
      return { caller: person.caller, settle: () => Promise.reject(caller) }
    const settle = async () => {
      if (need !== "user") consoles.requireMfa(caller, person)
      if (need !== "project") return caller
      const project_id =
        params.project_id ?? asked(asking, "project_id") ?? headers.get("x-project-id")
      if (mayStayOutside(route.scope, caller, project_id)) return caller
      return consoles.inProject(this.#store.read, caller, { ...wanted, project_id })
    }
    return { caller, settle }
  }

  /** Records the last use, at most once a minute, and without making the request wait. */
  #touch(caller: Caller, public_key_id?: string) {
    const { key_id, session_id, account_id, ip } = caller
    if (key_id !== null) this.#touchOnce(key_id, (tx) => apiKeys.touch(tx, key_id, ip))
    else if (session_id !== null)
      this.#touchOnce(`${session_id}${account_id}`, (tx) => consoles.touch(tx, caller))
    if (public_key_id === undefined) return
    const { applications } = this.#verifiers
    this.#touchOnce(public_key_id, (tx) => applications.touch(tx, public_key_id))
  }

  #touchOnce(name: string, write: (tx: Tx) => Promise<unknown>) {
    const last = this.#touched.get(name) ?? 0
    if (millis() - last < TOUCH_MILLISECONDS && millis() >= last) return
    if (this.#touched.size >= MOST_TOUCHED) this.#touched.clear()
    this.#touched.set(name, millis())
    this.#store
      .tx(write)
      .catch((error) => log.debug("the last use of a credential was not recorded", { error }))
  }
}

/** The window in which the requests of a caller are counted, and how many it admits. */
const windowOf = (caller: Caller): [name: string, limit: number | null] => [
  windowNameOf(caller),
  caller.account_id ? caller.limits.requests_per_minute : USER_PER_MINUTE,
]

/** The users of an application share its public key, so each address has a window. */
function windowNameOf(caller: Caller): string {
  const { kind, application, end_user, key_id, user_id, subscriber_id, ip } = caller
  if (kind === "app") return `${BY_ADDRESS}${application?.id} ${subscriberOf(ip)}`
  const name = end_user?.id ?? key_id ?? user_id ?? confinedTo(caller) ?? subscriber_id
  return `caller:${name}`
}

interface Known {
  caller: Caller
  /** Of the public key that came along. */
  public_key_id?: string
  /** The same caller in the project that they named; absent where the credential says all. Throws 404 and 422. */
  settle?: (() => Promise<Caller>) | undefined
}

const complete = (caller: Caller): Known => ({ caller })

/**
 * A public key beside another credential. Throws 401 where they belong to different projects or applications, and for
 * an end user also to different environments.
 */
function beside(
  { caller, settle }: Known,
  { caller: app, public_key_id }: NamedApplication,
): Known {
  const fit = (one: Caller): Caller => {
    if (one.project_id === "") return one // it is not chosen yet
    const [own, named] = [one.application, app.application]
    const is_same = one.project_id === app.project_id && (own === null || own.id === named?.id)
    if (!is_same) return refuse()
    if (one.kind !== "user") return { ...one, application: named }
    return own?.environment_id === named?.environment_id ? one : refuse()
  }
  const later = settle && (async () => fit(await settle()))
  return { caller: fit(caller), settle: later, public_key_id }
}

function refuseAddress({ ip_addresses, ip }: Caller) {
  if (ip_addresses.length === 0 || isWithin(ip, ip_addresses)) return
  fail(
    "ip_not_allowed",
    `The IP address ${ip} is not on the allowlist of this key. Add it, or use another key.`,
  )
}

const BLOCKED: Record<string, [ErrorCode, string]> = {
  locked: ["account_locked", "This account is locked. Ask the operator of this service."],
  suspended: [
    "account_suspended",
    "This account is suspended for a violation of the rules. Ask the operator of this service.",
  ],
}

function refuseAccount({ account_status }: Caller) {
  const blocked = BLOCKED[account_status]
  if (blocked) fail(...blocked)
}

/**
 * A delivery to a route that makes events would cause the next delivery, without an end. Deliveries
 * are recognized by headers that no endpoint can leave out or replace.
 */
function refuseDelivery({ request: { method, headers } }: Admission) {
  if (method === "GET" || !SIGNATURES.some((name) => headers.has(name))) return
  const message =
    "A webhook delivery must not call the API, because it would cause another delivery. Use another endpoint."
  fail("forbidden", message, { reason: "webhook_loop" })
}

const SIGNATURES = ["webhook-signature", "x-svc-signature"]

function attempt<Result>(run: () => Result): Result | Error {
  try {
    return run()
  } catch (error) {
    return error as Error
  }
}

const isUnauthorized = (error: unknown) => (error as { code?: string }).code === "unauthorized"
