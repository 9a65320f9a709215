import { fail } from "../core/errors"
import type { Caller } from "../identity/caller"
import type { NamedScope } from "../identity/console-caller"
import { reaches } from "../identity/scopes"
import type { AccountRole } from "../identity/tables"
import { isForBrowsers } from "./cors"
import type { AnyRoute } from "./route"

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

type RouteGate = Pick<AnyRoute, "scope" | "console_scope" | "callers" | "self">

/** Throws 403 `forbidden` with the scope or the role that is missing. */
export function authorize(caller: Caller, gate: RouteGate, params: Params) {
  const { scope, console_scope, callers, self } = gate
  const wanted = (caller.kind === "console" ? (console_scope ?? scope) : scope).split("|")
  if (caller.kind === "subscriber" && callers.includes("subscriber")) return
  if (caller.kind === "subscriber") return refuseSubscriber(wanted, callers)
  if (isForBrowsers({ callers }) && !callers.includes(caller.kind)) return refuseOthers()
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

/** Where no scope is needed (`-`), the answer names a kind of caller that the route has. */
function refuseSubscriber(wanted: string[], callers: AnyRoute["callers"]): never {
  const forKeys = callers.includes("key")
  const remedy = forKeys ? "Call it with an API key." : "Sign in, and send the access token."
  const scope = wanted.find((one) => !isRole(one))
  const role = scope === "-" && forKeys ? "key" : roleOf(wanted)
  const details = scope && scope !== "-" ? { required_scope: scope } : { required_role: role }
  return fail("forbidden", `This route is not for subscribers. ${remedy}`, details)
}

const refuseOthers = (): never =>
  fail("forbidden", "This route is for subscribers. Send the token of a subscriber.", {
    required_role: "subscriber",
  })

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
