import type { Caller } from "../identity/caller"

/** The part of a project that a device belongs to. It follows from the credential alone (contract 40, section 2). */
export type DeviceScope =
  | { type: "project" }
  | { type: "application"; application_id: string }
  | { type: "environment"; application_id: string; environment: "live" | "test" }

/** The scope of what a caller registers. A legacy key names no environment. */
export function scopeOf({ kind, application }: Pick<Caller, "kind" | "application">): DeviceScope {
  if (application === null || (kind !== "app" && kind !== "user")) return { type: "project" }
  const { id: application_id, environment } = application
  if (environment === null) return { type: "application", application_id }
  return { type: "environment", application_id, environment }
}

/** As the row keeps it: its words with colons between them. */
export const storedScope = (scope: DeviceScope): string => Object.values(scope).join(":")

export function shownScope(stored: string): DeviceScope {
  const [type, application_id = "", environment] = stored.split(":")
  if (type === "application") return { type, application_id }
  if (type !== "environment") return { type: "project" }
  return { type, application_id, environment: environment === "test" ? "test" : "live" }
}

/** Pushes to people do not reach these devices, unless they ask for them. */
export const isTestScope = (stored: string): boolean => stored.endsWith(":test")
