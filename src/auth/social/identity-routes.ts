import { Type as t } from "@sinclair/typebox"
import { conflict, fail } from "../../core/errors"
import { Deleted, deleted } from "../../http/field-schemas"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import type { AuthParts } from "../auth-parts"
import { authRow } from "../auth-rows"
import { findForUpdate } from "../end-users"
import { refuseImpersonated } from "../impersonation"
import { ownUser } from "../own-user"
import { Identity } from "../schemas"
import { redirectField } from "../sign-in-fields"
import { requireWayIn } from "../ways-in"
import { removeIdentity } from "./identities"
import { beginFlow } from "./oauth-flows"
import { Authorization, challengeField } from "./oauth-routes"

const Link = t.Object({
  redirect_url: redirectField(),
  code_challenge: t.Optional(challengeField()),
})

const USER: CallerKind[] = ["user"]
const PATH = "/v1/auth/identities"

/** The accounts elsewhere with which a user signs in. */
export const identityRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/oauth/{provider}/link", USER, "-"),
    summary: "Begin to link an account elsewhere",
    description:
      "The sign-in at the provider links its account to you, whatever its address. The application exchanges the code as after a sign-in.",
    body: Link,
    example: { redirect_url: "https://app.example.com/linked" },
    response: Authorization,
    errors: ["not_found", "forbidden", "conflict", "invalid_url", "provider_error"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { provider } = call.params
      const { environment, user, session_id } = await ownUser(parts.store.read, call)
      const known = user.identities.find((one) => one.provider === provider)
      if (known) return refuseLinked(known.id)
      const wish = { ...call.body, provider, own: { user_id: user.id, session_id } }
      return { data: await beginFlow(parts, environment, wish) }
    },
  }),
  route({
    ...authRow("GET", PATH, USER, "-"),
    summary: "List the accounts with which you sign in",
    description: "At most one of each provider. `users/me` has them, too.",
    response: t.Array(Identity),
    handle: async (call) => ({ data: (await ownUser(parts.store.read, call)).user.identities }),
  }),
  route({
    ...authRow("DELETE", `${PATH}/{identity_id}`, USER, "-"),
    summary: "Unlink an account",
    description: "The last way into the account stays.",
    response: Deleted,
    errors: ["not_found", "forbidden", "conflict"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { identity_id } = call.params
      const { environment, user } = await ownUser(parts.store.read, call)
      await parts.store.tx(async (tx) => {
        const same = await findForUpdate(tx, environment.project_id, user.id)
        const rest = await removeIdentity(tx, same, identity_id)
        if (!rest) return fail("not_found", "You have no such account.")
        return requireWayIn(environment, rest)
      })
      return deleted(identity_id)
    },
  }),
]

const refuseLinked = (id: string) =>
  conflict("already_linked", id, "You have an account of this provider. Unlink it first.")
