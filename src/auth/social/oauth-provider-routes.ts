import { Deleted, deleted } from "../../http/field-schemas"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import * as applications from "../applications"
import type { AuthParts } from "../auth-parts"
import { authRow, environmentIn, idIn } from "../auth-rows"
import * as schemas from "./oauth-provider-schemas"
import * as providers from "./oauth-providers"

const ALL = "/v1/auth/applications/{application_id}/oauth-providers"
const ONE = `${ALL}/{provider}` as const

const ADMINISTRATORS: CallerKind[] = ["key", "console"]

export const oauthProviderRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ALL, ADMINISTRATORS, "auth:read"),
    summary: "List the sign-in providers of an application",
    description: "Those of `live` come first. Secrets are masked, and private keys are not shown.",
    response: schemas.OAuthConfigs,
    handle: async (call) => {
      const { id } = await applications.find(parts.store.read, call.project_id, idIn(call))
      return { data: await providers.list(parts, call.project_id, id) }
    },
  }),
  route({
    ...authRow("PUT", ONE, ADMINISTRATORS, "auth:write"),
    summary: "Set up a sign-in provider",
    description:
      "`provider` is `google`, `apple`, `github`, `microsoft`, or `oidc-<name>` for an OpenID Connect issuer. It replaces what was set up, but an absent secret stays. A new `issuer` needs the secret again. `apple` signs with `private_key` in place of a secret.",
    body: schemas.OAuthConfigInput,
    example: { environment: "live", client_id: "4711", client_secret: "s3cret", enabled: true },
    response: schemas.OAuthConfig,
    errors: ["invalid_url", "conflict"],
    handle: async (call) => {
      const environment = await environmentIn(parts.store.read, call, call.body.environment)
      const place = { environment, provider: call.params.provider }
      return { data: await providers.put(parts, call.caller, place, call.body) }
    },
  }),
  route({
    ...authRow("DELETE", ONE, ADMINISTRATORS, "auth:write"),
    summary: "Delete a sign-in provider",
    description: "Nobody signs in there any more. The identities of users stay.",
    query: schemas.oauthConfigQuery,
    response: Deleted,
    handle: async (call) => {
      const environment = await environmentIn(parts.store.read, call, call.query.environment)
      const place = { environment, provider: call.params.provider }
      return deleted(await providers.remove(parts.store, call.caller, place))
    },
  }),
]
