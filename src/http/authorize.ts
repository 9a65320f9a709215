import { fail } from "../core/errors"
import { type Caller, confinedTo, isBrowserCaller } from "../identity/caller"
import type { NamedScope } from "../identity/console-caller"
import { reaches } from "../identity/scopes"
import type { AccountRole } from "../identity/tables"
import { isForBrowsers } from "./cors"
import type { AnyRoute, CallerKind } from "./route"

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
export function needOf({ scope, path, callers }: AnyRoute): NamedScope["need"] {
  if (!callers.includes("console")) return "user" // the caller is refused for what it is
  const roles = scope.split("|").filter(isRole)
  for (const role of roles) if (!ROLES[role]) throw new Error(`${path}: there is no ${role}`)
  if (roles.some((role) => role.startsWith("role:project_"))) return "project"
  if (roles.some((role) => role === "role:any" || role === "role:operator")) return "user"
  return roles.length > 0 ? "account" : "project"
}

/** Usage is also told of the account as a whole; an operator may look at the whole instance. */
export function mayStayOutside(scope: string, caller: Caller, project_id: string | null) {
  const wanted = scope.split("|")
  if (wanted.includes("usage:read")) return readsWholeAccount(caller)
  return wanted.includes("role:operator") && caller.operator && project_id === null
}

type RouteGate = Pick<AnyRoute, "scope" | "console_scope" | "callers" | "self"> &
  Partial<Pick<AnyRoute, "path" | "any_environment" | "before_factor" | "public_key_only">>

/** Throws 403 `forbidden` with the scope or the role that is missing, and 400 where a legacy key is not enough. */
export function authorize(caller: Caller, gate: RouteGate, params: Params) {
  const { scope, console_scope, callers, self, path = "" } = gate
  const wanted = (caller.kind === "console" ? (console_scope ?? scope) : scope).split("|")
  if (gate.public_key_only && caller.kind === "key") return refuseCredential()
  if (isBrowserCaller(caller.kind) && callers.includes(caller.kind)) {
    requireFactor(caller, gate)
    return requireEnvironment(caller, gate)
  }
  if (isForBrowsers({ callers }) && !callers.includes(caller.kind)) return refuseOthers(callers)
  if (isBrowserCaller(caller.kind)) return refuseBrowsers(caller.kind, wanted, callers)
  if (confinedTo(caller) && !path.startsWith(AREA_OF_SECRETS)) return refuseConfined(wanted)
  if (caller.kind === "console" && callers.includes("console")) {
    if (wanted.some((one) => consoleHas(caller, one))) return
    if (self && caller.user_id === params[self] && caller.account_role) return
    return refuseScope(wanted, wanted.some(isRole))
  }
  const scopes = wanted.filter((one) => !isRole(one))
  if (caller.kind === "key" && callers.includes("key")) {
    if (scopes.some((one) => keyHas(caller, one))) return
    if (self && caller.key_id === params[self]) return
    return refuseScope(scopes, false, caller.scopes)
  }
  if (caller.kind === "key") return refuseKey(wanted)
  return refuseScope(wanted, true)
}

const refuseCredential = () =>
  fail("unauthorized", `This route takes no key of a server. ${CREDENTIAL.app}`)

function requireFactor({ end_user }: Caller, { before_factor }: RouteGate) {
  if (!end_user?.lacks_factor || before_factor) return
  const hint = "Prove one with POST /v1/auth/mfa/step-up, or set one up first."
  fail("mfa_required", `This session needs a second factor. ${hint}`)
}

/** What the secret of an application reaches. */
export const AREA_OF_SECRETS = "/v1/auth/"

function refuseConfined(wanted: string[]): never {
  const text = "The secret of an application reaches its end users alone. Use an API key."
  return fail("forbidden", text, { required_scope: wanted[0] })
}

function requireEnvironment({ kind, application }: Caller, { any_environment }: RouteGate): void {
  if (kind !== "app" || application?.environment || any_environment) return
  const text =
    "This key names no environment. Use a key that begins with svca_live_pub_ or svca_test_pub_."
  fail("environment_required", text)
}

/** No scope helps here, so the answer names people, and the role they need. */
function refuseKey(wanted: string[]): never {
  const text =
    "This route is only for people. An API key cannot call it. Sign in, and send the access token."
  return fail("forbidden", text, { required_role: roleOf(wanted) })
}

/** Where no scope is needed (`-`), the answer names a kind of caller that the route has. */
function refuseBrowsers(kind: CallerKind, wanted: string[], callers: CallerKind[]): never {
  const forKeys = callers.includes("key")
  const remedy = forKeys ? CREDENTIAL.key : CREDENTIAL.console
  const scope = wanted.find((one) => !isRole(one))
  const role = scope === "-" && forKeys ? "key" : roleOf(wanted)
  const details = scope && scope !== "-" ? { required_scope: scope } : { required_role: role }
  return fail("forbidden", `This route is not for ${PLURAL[kind]}. ${remedy}`, details)
}

/** The first of its callers is the one that a route is for. */
function refuseOthers(callers: CallerKind[]): never {
  const [first = "none", ...others] = callers
  const text = `This route is for ${[first, ...others].map((kind) => PLURAL[kind]).join(" and ")}.`
  return fail("forbidden", `${text} ${CREDENTIAL[first]}`, { required_role: first })
}

const PLURAL: Record<CallerKind, string> = {
  key: "API keys",
  console: "people of the console",
  app: "applications",
  user: "end users",
  subscriber: "subscribers",
  none: "everybody",
}

const CREDENTIAL: Record<CallerKind, string> = {
  key: "Call it with an API key.",
  console: "Sign in, and send the access token.",
  app: "Send a public key of the application in X-Application-Key.",
  user: "Send the access token of an end user.",
  subscriber: "Send the token of a subscriber.",
  none: "",
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

/** A key is told its own scopes, too: otherwise it would have to try each route to know them. */
function refuseScope(wanted: string[], by_role: boolean, granted_scopes?: string[]): never {
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
    ...(granted_scopes && { granted_scopes }),
  })
}
