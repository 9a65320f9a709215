import type { ProjectRole } from "./tables"

const ACTIONS = {
  email: ["send", "read"],
  push: ["send", "read", "write"],
  sms: ["send", "read", "write"],
  inbox: ["send", "read"],
  domains: ["read", "write"],
  api_keys: ["read", "write"],
  templates: ["read", "write"],
  webhooks: ["read", "write"],
  subscribers: ["read", "write"],
  topics: ["read", "write", "publish"],
  suppressions: ["read", "write"],
  workflows: ["read", "write", "trigger"],
  broadcasts: ["read", "write", "send"],
  inbound: ["read", "write"],
  auth: ["read", "write"],
  providers: ["read"],
  settings: ["read", "write"],
  usage: ["read"],
  ai: ["use"],
}

/** Every scope a key may hold (contract 00, section 5), and `*` for all of them. */
export const SCOPES: readonly string[] = [
  ...Object.entries(ACTIONS).flatMap(([noun, verbs]) => verbs.map((verb) => `${noun}:${verb}`)),
  "*",
]

export const isScope = (text: string) => SCOPES.includes(text)

/**
 * Whether these scopes satisfy what a route asks for: one scope, or several joined by `|`. `*` is
 * everything that a key may do, which no role is.
 */
export const grants = (scopes: string[], required: string) =>
  required === "-" ||
  required
    .split("|")
    .some((one) => scopes.includes(one) || (scopes.includes("*") && !one.startsWith("role:")))

/** The least project role of a console caller for a scope (contract 00, section 5). */
const ROLE_OF: Partial<Record<string, ProjectRole>> = {
  "sms:write": "admin",
  "api_keys:write": "admin",
  "settings:write": "admin",
  "ai:use": "developer",
}

const RANKS: Record<ProjectRole, number> = { viewer: 0, developer: 1, admin: 2 }

/** Whether a role is that one or a higher one. */
export const reaches = (role: ProjectRole | null, least: ProjectRole) =>
  role !== null && RANKS[role] >= RANKS[least]

const scopesBelow = (role: ProjectRole) =>
  SCOPES.filter((scope) => {
    const least = ROLE_OF[scope] ?? (scope.endsWith(":read") ? "viewer" : "developer")
    return scope !== "*" && reaches(role, least)
  })

/** An admin has every scope that a key may have. */
const SCOPES_OF: Record<ProjectRole, string[]> = {
  viewer: scopesBelow("viewer"),
  developer: scopesBelow("developer"),
  admin: ["*"],
}

export const scopesOf = (role: ProjectRole | null): string[] => (role ? SCOPES_OF[role] : [])

/** Whether these scopes cover those. */
export const isWithinOwn = (own: string[], wanted: string[]) =>
  own.includes("*") || wanted.every((scope) => own.includes(scope))
