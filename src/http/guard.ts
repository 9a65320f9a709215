import { ApiError, type ErrorCode, fail } from "../core/errors"
import { log } from "../core/log"
import { millis } from "../core/time"
import * as apiKeys from "../identity/api-keys"
import { authenticate, refuse } from "../identity/authenticate"
import { type Caller, nobody } from "../identity/caller"
import type { NamedScope } from "../identity/console-caller"
import * as consoles from "../identity/console-caller"
import { reaches } from "../identity/scopes"
import type { AccountRole } from "../identity/tables"
import { isWithin } from "../lib/ip-ranges"
import type { Store } from "../store/store"
import type { Quota, RateLimits } from "./rate-limits"
import type { AnyRoute } from "./route"

const TOUCH_MILLISECONDS = 60_000
const MOST_TOUCHED = 10_000

/** Of a console user on routes that belong to no account. */
const USER_PER_MINUTE = 600

/** Verifies an access token of the console; throws 401 for every other text. */
export type VerifyAccess = (token: string) => Promise<{ user_id: string; session_id: string }>

/** A request on its way through the checks. */
export interface Admission {
  route: AnyRoute
  request: Request
  params: Record<string, string>
  ip: string
  /** Both are set as soon as they are known, so that a refusal can tell of them. */
  caller?: Caller
  quota?: Quota
}

/** Decides which callers are let in: credential 401, address 403, account 403, rate 429, then scope 403. */
export class Guard {
  readonly #store: Store
  readonly #limits: RateLimits
  readonly #verify: VerifyAccess
  readonly #touched = new Map<string, number>()

  constructor(store: Store, limits: RateLimits, verify: VerifyAccess) {
    this.#store = store
    this.#limits = limits
    this.#verify = verify
  }

  /** Lets the request in with its caller and its quota, or throws. */
  async admit(asking: Admission): Promise<void> {
    const known = await this.#counted(asking.ip, () => this.#identify(asking))
    const { caller } = known
    asking.caller = caller
    asking.quota = this.#limits.peek(...windowOf(caller))
    refuseAddress(caller)
    refuseAccount(caller)
    asking.quota = await this.countRequest(caller)
    refuseDelivery(asking)
    const settled = await known.settle()
    authorize(settled, asking.route, asking.params)
    asking.caller = settled
    this.#touch(settled)
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
  countRequest = (caller: Caller): Promise<Quota> => this.#limits.take(...windowOf(caller))

  /** Whether an open connection would still be let in. Counts and records nothing. */
  async stillAdmits(asking: Admission): Promise<boolean> {
    try {
      const known = await this.#identify(asking)
      refuseAddress(known.caller)
      refuseAccount(known.caller)
      authorize(await known.settle(), asking.route, asking.params)
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
    const { route, request, params, ip } = asking
    const { per_minute } = route
    const quota = per_minute
      ? await this.#limits.takeEntry(ip, per_minute)
      : this.#limits.takePublic(ip)
    if (route.prove) await this.#counted(ip, async () => route.prove?.(params))
    const credential = route.callers.includes("console") ? credentialOf(request) : undefined
    const is_nobody = credential === undefined || isKey(credential)
    asking.caller = is_nobody
      ? nobody(ip)
      : (await this.#counted(ip, () => this.#person(credential, ip))).caller
    asking.quota = quota
  }

  /** Only what fails is counted and refused: a good credential behind the same address goes on. */
  async #counted<Result>(ip: string, identify: () => Promise<Result>): Promise<Result> {
    try {
      return await identify()
    } catch (error) {
      if (isUnauthorized(error)) this.#limits.countFailure(ip)
      throw error
    }
  }

  async #identify(asking: Admission): Promise<Known> {
    const { request, ip } = asking
    const credential = credentialOf(request) ?? refuse()
    if (isKey(credential)) {
      const caller = await authenticate(this.#store.read, credential, ip)
      return { caller, settle: async () => caller }
    }
    return this.#inAccount(await this.#person(credential, ip), asking)
  }

  async #person(token: string, ip: string): Promise<consoles.SignedIn> {
    const found = await this.#verify(token).catch((error) => {
      if (isUnauthorized(error)) return refuse() // in the words for every credential
      throw error
    })
    return (await consoles.person(this.#store.read, found, ip)) ?? refuse()
  }

  /**
   * The account decides the rate limit, and whether its callers are answered at all. A wrong choice
   * of account or project is told after these checks.
   */
  #inAccount(person: consoles.SignedIn, asking: Admission): Known {
    const { route, request, params } = asking
    const need = needOf(route)
    const headers = request.headers
    const { of_deleted } = route
    const wanted = { need, of_deleted, account_id: headers.get("x-account-id"), project_id: null }
    const caller = attempt(() => consoles.inAccount(person, wanted))
    if (caller instanceof Error)
      return { caller: person.caller, settle: () => Promise.reject(caller) }
    const settle = async () => {
      if (need !== "user") consoles.demandMfa(caller, person)
      if (need !== "project") return caller
      const project_id = params.project_id ?? asked(asking) ?? headers.get("x-project-id")
      if (mayStayOutside(route.scope, caller, project_id)) return caller
      return consoles.inProject(this.#store.read, caller, { ...wanted, project_id })
    }
    return { caller, settle }
  }

  /** Records the last use, at most once a minute, and without making the request wait. */
  #touch(caller: Caller) {
    const { key_id, session_id, account_id, ip } = caller
    const name = key_id ?? `${session_id}${account_id}`
    const last = this.#touched.get(name) ?? 0
    if (millis() - last < TOUCH_MILLISECONDS && millis() >= last) return
    if (this.#touched.size >= MOST_TOUCHED) this.#touched.clear()
    this.#touched.set(name, millis())
    this.#store
      .tx((tx) => (key_id ? apiKeys.touch(tx, key_id, ip) : consoles.touch(tx, caller)))
      .catch((error) => log.debug("the last use of a credential was not recorded", { error }))
  }
}

/** The window in which the requests of a caller are counted, and how many it admits. */
const windowOf = (caller: Caller): [name: string, limit: number | null] => [
  `caller:${caller.key_id ?? caller.user_id}`,
  caller.account_id ? caller.limits.requests_per_minute : USER_PER_MINUTE,
]

interface Known {
  caller: Caller
  /** The same caller in the project that they named. Throws 404 and 422. */
  settle: () => Promise<Caller>
}

const isKey = (credential: string) => credential.startsWith("svc_")

/** One credential, in either header. Two that differ are none; undefined where there is none. */
function credentialOf({ headers }: Request): string | undefined {
  const key = headers.get("x-api-key")
  const authorization = headers.get("authorization")
  if (authorization === null) return key === null || isKey(key) ? (key ?? undefined) : refuse()
  const bearer = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
  if (bearer === undefined || (key !== null && key !== bearer)) return refuse()
  return bearer
}

/** The project in the query, where the route has such a parameter. */
const asked = ({ route, request }: Admission) =>
  route.query?.properties.project_id
    ? new URL(request.url).searchParams.get("project_id")
    : undefined

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

type Rule = (caller: Caller) => boolean

const oneOf =
  (...roles: AccountRole[]): Rule =>
  ({ account_role }) =>
    account_role !== null && roles.includes(account_role)

/** The callers that satisfy a role of the scope column (contract 00, section 5). */
const ROLES: Record<string, Rule> = {
  "role:any": ({ kind }) => kind === "console",
  "role:operator": ({ operator }) => operator,
  "role:member": oneOf("owner", "admin", "member"),
  "role:billing": oneOf("owner", "admin", "billing_admin"),
  "role:account_admin": oneOf("owner", "admin"),
  "role:owner": oneOf("owner"),
  "role:project_viewer": ({ project_role }) => reaches(project_role, "viewer"),
  "role:project_admin": ({ project_role }) => reaches(project_role, "admin"),
}

/** People that pay for an account may read its usage as a whole, without a project. */
const readsWholeAccount = oneOf("owner", "admin", "billing_admin")

const isRole = (text: string) => text.startsWith("role:")

/** What a console caller must name for this route. A mistyped role stops the start. */
export function needOf({ scope, path }: AnyRoute): NamedScope["need"] {
  const roles = scope.split("|").filter(isRole)
  for (const role of roles) if (!ROLES[role]) throw new Error(`${path}: there is no ${role}`)
  if (roles.some((role) => role.startsWith("role:project_"))) return "project"
  if (roles.some((role) => role === "role:any" || role === "role:operator")) return "user"
  return roles.length > 0 ? "account" : "project"
}

/** Usage is also told of the account as a whole; an operator may look at the whole instance. */
function mayStayOutside(scope: string, caller: Caller, project_id: string | null) {
  const wanted = scope.split("|")
  if (wanted.includes("usage:read")) return readsWholeAccount(caller)
  return wanted.includes("role:operator") && caller.operator && project_id === null
}

type RouteGate = Pick<AnyRoute, "scope" | "callers" | "self">

/** Throws 403 `forbidden` with the scope or the role that is missing. */
function authorize(caller: Caller, { scope, callers, self }: RouteGate, params: Params) {
  const wanted = scope.split("|")
  if (caller.kind === "console" && callers.includes("console")) {
    if (wanted.some((one) => consoleHas(caller, one))) return
    if (self && caller.user_id === params[self] && caller.account_role) return
    return refuseScope(wanted, wanted.some(isRole))
  }
  const scopes = wanted.filter((one) => !isRole(one))
  if (caller.kind === "key" && callers.includes("key")) {
    if (scopes.some((one) => keyHas(caller, one))) return
    if (self && caller.key_id === params[self]) return
    return refuseScope(scopes, false)
  }
  if (caller.kind === "key") return refuseKey(wanted)
  return refuseScope(wanted, true)
}

/** No scope helps here, so the answer names people, and the role they need. */
function refuseKey(wanted: string[]): never {
  const text =
    "This route is only for people. An API key cannot call it. Sign in, and send the access token."
  return fail("forbidden", text, { required_role: roleOf(wanted) })
}

const roleOf = (wanted: string[]): string => wanted.find(isRole)?.replace(/^role:/, "") ?? "console"

type Params = Record<string, string>

function consoleHas(caller: Caller, wanted: string): boolean {
  if (isRole(wanted)) return ROLES[wanted]?.(caller) ?? false
  if (wanted === "usage:read" && readsWholeAccount(caller)) return true
  return caller.project_role !== null && keyHas(caller, wanted)
}

const keyHas = ({ scopes }: Caller, wanted: string) =>
  wanted === "-" || scopes.includes("*") || scopes.includes(wanted)

function refuseScope(wanted: string[], by_role: boolean): never {
  if (by_role) {
    const required_role = roleOf(wanted)
    return fail("forbidden", `This needs the role ${required_role}. Ask a person that has it.`, {
      required_role,
    })
  }
  const [first = ""] = wanted
  const names = wanted.map((one) => one.replace(/^role:/, "")).join(" or ")
  return fail("forbidden", `This needs the scope ${names}. Use a key or a role that has it.`, {
    required_scope: first,
  })
}
