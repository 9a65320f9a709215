import type { AnyRoute } from "../http/route"
import type { AuthParts } from "./auth-parts"
import { endUserRoutes } from "./end-user-routes"
import { ownUserRoutes } from "./own-user-routes"
import { userSessionRoutes } from "./user-session-routes"

/** End users of applications: a line for each part of the area. */
export const authRoutes = (parts: AuthParts): AnyRoute[] => [
  ...userSessionRoutes(parts),
  ...ownUserRoutes(parts),
  ...endUserRoutes(parts),
]
