import { Type as t } from "@sinclair/typebox"
import { Deleted, deleted } from "../../http/field-schemas"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import type { AuthParts } from "../auth-parts"
import { authRow, environmentIn, idIn, targetFields } from "../auth-rows"
import { findEnvironment } from "../environments"
import { ENVIRONMENT_NAMES } from "../tables"
import * as gamingProviders from "./gaming-providers"
import { GAMING_PROVIDERS } from "./tables"

const ALL = "/v1/auth/applications/{application_id}/gaming-providers"
const ONE = `${ALL}/{provider}` as const

const ADMINISTRATORS: CallerKind[] = ["key", "console"]

const choices = { provider: GAMING_PROVIDERS }

/** The platforms of games whose players an application lets in. */
export const gamingProviderRoutes = ({ store, secrets }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ALL, ADMINISTRATORS, "auth:read"),
    summary: "List the gaming platforms of an application",
    description: "Those of both environments. Secrets are masked.",
    response: t.Array(gamingProviders.GamingConfig),
    handle: async (call) => {
      const id = idIn(call)
      const found = ENVIRONMENT_NAMES.map((name) =>
        findEnvironment(store.read, call.project_id, id, name),
      )
      return { data: await gamingProviders.list(store.read, secrets, await Promise.all(found)) }
    },
  }),
  route({
    ...authRow("PUT", ONE, ADMINISTRATORS, "auth:write"),
    choices,
    summary: "Set up a gaming platform",
    description:
      "`game-center` needs `bundle_ids` and `team_id`, `play-games` needs `client_id` and `client_secret`. An absent secret keeps the stored one.",
    body: gamingProviders.GamingInput,
    example: { enabled: true, bundle_ids: ["com.example.game"], team_id: "DEF123GHIJ" },
    response: gamingProviders.GamingConfig,
    handle: async (call) => {
      const { caller, body, params } = call
      gamingProviders.requireFields(params.provider, body)
      const environment = await environmentIn(store.read, call, body.environment)
      const place = { environment, provider: params.provider }
      const row = await store.tx((tx) => gamingProviders.put(tx, secrets, caller, place, body))
      return { data: gamingProviders.toResponse(secrets, environment, row) }
    },
  }),
  route({
    ...authRow("DELETE", ONE, ADMINISTRATORS, "auth:write"),
    choices,
    summary: "Remove a gaming platform",
    description: "Its players cannot sign in from then on. They are kept.",
    query: t.Object({ environment: targetFields.environment }),
    response: Deleted,
    handle: async (call) => {
      const environment = await environmentIn(store.read, call, call.query.environment)
      const place = { environment, provider: call.params.provider }
      return deleted(await store.tx((tx) => gamingProviders.remove(tx, call.caller, place)))
    },
  }),
]
