import * as apiKeys from "../api-keys/api-keys"
import { allow, authenticate, type Caller, refuse } from "../api-keys/authenticate"
import { type ErrorCode, fail } from "../core/errors"
import { log } from "../core/log"
import { millis } from "../core/time"
import { isWithin } from "../lib/ip-ranges"
import type { Store } from "../store/store"
import { PUBLIC_PER_MINUTE, type Quota, type RateLimits, UNLIMITED } from "./rate-limit"
import type { AnyRoute } from "./route"

const TOUCH_MILLISECONDS = 60_000
const MOST_TOUCHED = 10_000

/** Requests a minute by plan (specification, section 8). */
const REQUESTS_PER_MINUTE: Record<string, number> = {
  free: 60,
  starter: 300,
  pro: 600,
  scale: 1200,
  enterprise: UNLIMITED,
}

export interface Admitted {
  caller: Caller
  quota: Quota
}

interface Asking {
  route: AnyRoute
  request: Request
  ip: string
}

/** Decides who may call: credential 401, address 403, account 403, rate 429, then scope 403. */
export class Guard {
  readonly #store: Store
  readonly #limits: RateLimits
  readonly #touched = new Map<string, number>()

  constructor(store: Store, limits: RateLimits) {
    this.#store = store
    this.#limits = limits
  }

  /** `onCaller` hears of the caller as soon as he is known, so that a refusal can tell of him. */
  async admit(asking: Asking, onCaller: (admitted: Admitted) => void): Promise<Caller> {
    const caller = await this.#identify(asking)
    const limit = REQUESTS_PER_MINUTE[caller.plan] ?? UNLIMITED
    onCaller({ caller, quota: this.#limits.peek(caller.key_id, limit) })
    refuseAddress(caller, asking.ip)
    refuseAccount(caller)
    onCaller({ caller, quota: this.#limits.take(caller.key_id, limit) })
    refuseKind(caller, asking.route)
    allow(caller, asking.route.scope)
    this.#touch(caller, asking.ip)
    return caller
  }

  /** For routes that anybody may call. */
  admitAnybody({ ip }: Asking): Quota {
    return this.#limits.take(`public:${ip}`, PUBLIC_PER_MINUTE)
  }

  /** Only what fails is counted and refused: a good key behind the same address goes on. */
  async #identify({ request, ip }: Asking): Promise<Caller> {
    try {
      return await authenticate(this.#store.read, credential(request))
    } catch (error) {
      if (isUnauthorized(error)) this.#limits.countFailure(ip)
      throw error
    }
  }

  /** The last use is for people who tidy up: a minute's truth is enough, and costs no request. */
  #touch({ key_id }: Caller, ip: string) {
    const last = this.#touched.get(key_id) ?? 0
    if (millis() - last < TOUCH_MILLISECONDS) return
    if (this.#touched.size >= MOST_TOUCHED) this.#touched.clear()
    this.#touched.set(key_id, millis())
    this.#store
      .tx((tx) => apiKeys.touch(tx, key_id, ip))
      .catch((error) => log.debug("the last use of a key was not recorded", { key_id, error }))
  }
}

/** One credential, in either header. Two that differ are none. */
function credential(request: Request): string {
  const key = request.headers.get("x-api-key")
  const authorization = request.headers.get("authorization")
  const bearer = authorization === null ? null : /^Bearer +(\S+)$/i.exec(authorization)?.[1]
  if (bearer === undefined) return refuse()
  if (key !== null && bearer !== null && key !== bearer) return refuse()
  return key ?? bearer ?? refuse()
}

function refuseAddress({ ip_addresses }: Caller, ip: string) {
  if (ip_addresses.length === 0 || isWithin(ip, ip_addresses)) return
  fail("ip_not_allowed", `The address ${ip} is not on the allowlist of this key.`)
}

/** Some routes are for people: a key may not call them, whatever its scopes. */
function refuseKind({ kind }: Caller, { callers, scope }: AnyRoute) {
  if (callers.includes(kind)) return
  const [, required_role] = /^role:(\w+)/.exec(scope) ?? []
  const details = required_role ? { required_role } : {}
  fail("forbidden", "An API key cannot call this route.", details)
}

const BLOCKED: Record<string, [ErrorCode, string]> = {
  locked: ["account_locked", "This account is locked. Ask the operator of this service."],
  suspended: ["account_suspended", "This account is suspended for a violation of the rules."],
}

function refuseAccount({ account_status }: Caller) {
  const blocked = BLOCKED[account_status]
  if (blocked) fail(...blocked)
}

const isUnauthorized = (error: unknown) => (error as { code?: string }).code === "unauthorized"
