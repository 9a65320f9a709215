import type { AnyRoute } from "../http/route"
import type { AuthParts } from "./auth-parts"

/** End users of applications: a line for each part of the area. */
export const authRoutes = (_parts: AuthParts): AnyRoute[] => []
