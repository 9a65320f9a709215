import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { ONE_LINE } from "../http/field-schemas"
import { type AnyRoute, projectRow, route } from "../http/route"
import { count, id, text } from "../lib/record-fields"
import type { Store } from "../store/store"
import * as subscribers from "../subscribers/find-subscriber"
import { type InboxTokens, LONGEST_SECONDS, SHORTEST_SECONDS } from "./inbox-tokens"

const named = (description: string) =>
  t.Optional(t.String({ minLength: 1, maxLength: 255, pattern: ONE_LINE, description }))

const WantedToken = t.Object({
  external_id: named("The subscriber, by your own id."),
  subscriber_id: named("The subscriber, by its id."),
  ttl_seconds: t.Optional(
    t.Integer({
      minimum: SHORTEST_SECONDS,
      maximum: LONGEST_SECONDS,
      default: LONGEST_SECONDS,
      description: "Seconds for which the token is valid.",
    }),
  ),
})

type WantedToken = Static<typeof WantedToken>

export const inboxTokenRoutes = ({
  store,
  inbox_tokens,
}: {
  store: Store
  inbox_tokens: Pick<InboxTokens, "sign">
}): AnyRoute[] => [
  route({
    ...projectRow("POST", "/v1/subscriber-inbox/token", "inbox:send"),
    summary: "Make a token for one subscriber",
    description:
      "Your server gives the token to the app of the subscriber. The app sends it as `Authorization: Bearer`. It is a JWT with `aud` `inbox`, signed with EdDSA. Its public keys are at `{iss}/jwks.json`.",
    body: WantedToken,
    example: { external_id: "user_42", ttl_seconds: 3600 },
    read: readWanted,
    response: InboxToken,
    errors: ["subscriber_not_found"],
    handle: async ({ project_id, body }) => {
      const { external_id, subscriber_id = "", ttl_seconds: expires_in = LONGEST_SECONDS } = body
      const { id } =
        external_id === undefined
          ? await subscribers.find(store.read, project_id, subscriber_id)
          : await subscribers.findExternal(store.read, project_id, external_id)
      const token = await inbox_tokens.sign({ id, project_id }, expires_in)
      return { data: { token, subscriber_id: id, expires_in } }
    },
  }),
]

function readWanted(wanted: WantedToken, problems: Problems): WantedToken {
  const { external_id, subscriber_id } = wanted
  if (external_id === undefined && subscriber_id === undefined) {
    problems.add("external_id", "required", "Give either `external_id` or `subscriber_id`.")
  }
  if (external_id !== undefined && subscriber_id !== undefined) {
    const message = "Give either `external_id` or `subscriber_id`, not both."
    problems.add("subscriber_id", "invalid", message)
  }
  return wanted
}

const InboxToken = t.Object(
  {
    token: text("eyJhbGciOiJFZERTQSIsInR5cCI6ImluYm94K2p3dCJ9.eyJzdWIiOiIwMTk5YTFjMiJ9.c2ln"),
    subscriber_id: id(),
    expires_in: count(604_800, "Seconds."),
  },
  { title: "InboxToken" },
)
