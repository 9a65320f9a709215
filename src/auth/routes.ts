import type { AnyRoute } from "../http/route"
import { anonymousRoutes } from "./anonymous-routes"
import { applicationRoutes } from "./application-routes"
import type { AuthParts } from "./auth-parts"
import { codeRoutes } from "./code-routes"
import { emailTemplateRoutes } from "./email-template-routes"
import { endUserRoutes } from "./end-user-routes"
import { environmentRoutes } from "./environment-routes"
import { challengeRoutes } from "./factors/challenge-routes"
import { ownFactorRoutes } from "./factors/own-factor-routes"
import { passkeyRoutes } from "./factors/passkey-routes"
import { magicLinkRoutes } from "./magic-link-routes"
import { memberRoutes } from "./organizations/membership-routes"
import { invitationRoutes } from "./organizations/organization-invitation-routes"
import { organizationRoutes } from "./organizations/organization-routes"
import { ownAccountRoutes } from "./own-account-routes"
import { ownUserRoutes } from "./own-user-routes"
import { passwordRoutes } from "./password-routes"
import { publicRoutes } from "./public-routes"
import { gamingProviderRoutes } from "./social/gaming-provider-routes"
import { gamingRoutes } from "./social/gaming-routes"
import { identityRoutes } from "./social/identity-routes"
import { oauthProviderRoutes } from "./social/oauth-provider-routes"
import { oauthRoutes } from "./social/oauth-routes"
import { userSessionRoutes } from "./user-session-routes"

/** End users of applications: a line for each part of the area. */
export const authRoutes = (parts: AuthParts): AnyRoute[] => [
  ...applicationRoutes(parts),
  ...environmentRoutes(parts),
  ...gamingProviderRoutes(parts),
  ...oauthProviderRoutes(parts),
  ...gamingRoutes(parts),
  ...publicRoutes(parts),
  ...emailTemplateRoutes(),
  ...magicLinkRoutes(parts),
  ...codeRoutes(parts),
  ...passwordRoutes(parts),
  ...anonymousRoutes(parts),
  ...challengeRoutes(parts),
  ...ownFactorRoutes(parts),
  ...userSessionRoutes(parts),
  ...ownUserRoutes(parts),
  ...endUserRoutes(parts),
  ...ownAccountRoutes(parts),
  ...organizationRoutes(parts),
  ...memberRoutes(parts),
  ...invitationRoutes(parts),
  ...oauthRoutes(parts),
  ...identityRoutes(parts),
  ...passkeyRoutes(parts),
]
