import type { ProjectRole } from "./tables"

/** Every scope a key may hold (contract 00, section 5), and `*` for all of them. */
export const SCOPES = [
  "email:send",
  "email:read",
  "push:send",
  "push:read",
  "push:write",
  "sms:send",
  "sms:read",
  "sms:write",
  "inbox:send",
  "inbox:read",
  "domains:read",
  "domains:write",
  "api_keys:read",
  "api_keys:write",
  "templates:read",
  "templates:write",
  "webhooks:read",
  "webhooks:write",
  "subscribers:read",
  "subscribers:write",
  "topics:read",
  "topics:write",
  "topics:publish",
  "suppressions:read",
  "suppressions:write",
  "workflows:read",
  "workflows:write",
  "workflows:trigger",
  "broadcasts:read",
  "broadcasts:write",
  "broadcasts:send",
  "inbound:read",
  "inbound:write",
  "auth:read",
  "auth:write",
  "providers:read",
  "settings:read",
  "settings:write",
  "usage:read",
  "ai:use",
  "*",
] as const

export const isScope = (text: string) => (SCOPES as readonly string[]).includes(text)

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

/** An admin may do whatever a key may do. */
const SCOPES_OF: Record<ProjectRole, string[]> = {
  viewer: scopesBelow("viewer"),
  developer: scopesBelow("developer"),
  admin: ["*"],
}

export const scopesOf = (role: ProjectRole | null): string[] => (role ? SCOPES_OF[role] : [])

/** Whether these scopes cover those. */
export const isWithinOwn = (own: string[], wanted: string[]) =>
  own.includes("*") || wanted.every((scope) => own.includes(scope))
