import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, type CallerKind, route } from "../http/route"
import * as applications from "./applications"
import type { AuthParts } from "./auth-parts"
import { authRow, idIn } from "./auth-rows"
import * as changes from "./environment-changes"
import { Environment, EnvironmentPatch, readEnvironmentPatch } from "./environment-input"
import { findEnvironment } from "./environments"
import { ENVIRONMENT_NAMES } from "./tables"

const ALL = "/v1/auth/applications/{application_id}/environments"
const ONE = `${ALL}/{environment}` as const

const ADMINISTRATORS: CallerKind[] = ["key", "console"]

const choices = { environment: ENVIRONMENT_NAMES }

export const environmentRoutes = ({ store, secrets, rules }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ALL, ADMINISTRATORS, "auth:read"),
    summary: "List the environments of an application",
    description: "Each application has `live` and `test`, which share no users.",
    response: t.Array(Environment),
    handle: async (call) => {
      const { id } = await applications.find(store.read, call.project_id, idIn(call))
      const found = ENVIRONMENT_NAMES.map((name) =>
        findEnvironment(store.read, call.project_id, id, name),
      )
      return { data: (await Promise.all(found)).map(changes.toResponse) }
    },
  }),
  route({
    ...authRow("GET", ONE, ADMINISTRATORS, "auth:read"),
    choices,
    summary: "Show the settings of an environment",
    description: "Null is the setting of the application. The secret of the captcha is masked.",
    response: Environment,
    handle: async (call) => {
      const { environment } = call.params
      const found = await findEnvironment(store.read, call.project_id, idIn(call), environment)
      return { data: changes.toResponse(found) }
    },
  }),
  route({
    ...authRow("PATCH", ONE, ADMINISTRATORS, "auth:write"),
    choices,
    summary: "Change settings of an environment",
    description:
      "Settings that are absent stay as they are, also those within an object. Null restores the default, or the setting of the application. `password_policy` may ask for more than the rules for all passwords, never for less. `captcha` is set as a whole, with its secret.",
    body: EnvironmentPatch,
    example: { methods: { phone_otp: true }, token_claims: ["plan"] },
    readRaw: readEnvironmentPatch,
    response: Environment,
    errors: [
      "invalid_url",
      "invalid_email",
      "template_not_found",
      "invalid_template",
      "domain_not_verified",
    ],
    handle: async (call) => {
      const { caller, body } = call
      const application_id = idIn(call)
      const name = call.params.environment
      await applications.find(store.read, call.project_id, application_id)
      await changes.requireSender(rules, caller, name, body)
      const place = { application_id, name }
      const after = await store.tx((tx) => changes.change(tx, { caller, secrets }, place, body))
      return { data: changes.toResponse(after) }
    },
  }),
]
