import type { AnyRoute } from "../../src/http/route"

/** From the lowest; each may do what those before it may. */
export const PROJECT_ROLES = ["viewer", "developer", "admin"] as const

export type ProjectRole = (typeof PROJECT_ROLES)[number]

/** The contract's table (00, section 5), copied by hand: the code is to agree with it. */
const LEAST: Record<ProjectRole, string> = {
  viewer: `
    email:read push:read sms:read inbox:read domains:read api_keys:read templates:read
    webhooks:read subscribers:read topics:read suppressions:read workflows:read broadcasts:read
    inbound:read auth:read providers:read settings:read usage:read role:project_viewer -`,
  developer: `
    email:send push:send push:write sms:send inbox:send domains:write templates:write
    webhooks:write subscribers:write topics:write topics:publish suppressions:write
    workflows:write workflows:trigger broadcasts:write broadcasts:send inbound:write auth:write
    ai:use`,
  admin: "sms:write api_keys:write settings:write role:project_admin",
}

const rankOf = (scope: string) =>
  PROJECT_ROLES.findIndex((role) => LEAST[role].trim().split(/\s+/).includes(scope))

/** The rank that a project role needs for the route; undefined where none of them decides. */
function leastRank({ callers, console_scope, ...route }: AnyRoute): number | undefined {
  if (!callers.includes("console")) return undefined
  const scope = console_scope ?? route.scope
  const ranks = scope.split("|").map(rankOf)
  const known = ranks.filter((rank) => rank >= 0)
  const is_of_account = /role:(?!project_)/.test(scope)
  if (is_of_account) return undefined
  if (known.length !== ranks.length) throw new Error(`${scope} is not in the table of roles`)
  return Math.min(...known)
}

/** The project roles that are too low for the route, and those that are not. */
export function rolesFor(route: AnyRoute): { refused: ProjectRole[]; admitted: ProjectRole[] } {
  const least = leastRank(route)
  if (least === undefined) return { refused: [], admitted: [] }
  return { refused: PROJECT_ROLES.slice(0, least), admitted: PROJECT_ROLES.slice(least) }
}
