import { Type as t } from "@sinclair/typebox"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { type AnyRoute, anonymousRow, route } from "../http/route"
import { id, text, word } from "../lib/record-fields"
import type { Store } from "../store/store"
import { KEPT_SECONDS, publishedKeys } from "./signing-keys"

const { per_minute: _, ...anybody } = anonymousRow("GET", "/v1/projects/{project_id}/jwks.json")

const KeySet = t.Object(
  {
    keys: t.Array(
      t.Object({
        kty: word(["OKP"]),
        crv: word(["Ed25519"]),
        x: text("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"),
        kid: id(),
        alg: word(["EdDSA"]),
        use: word(["sig"]),
      }),
    ),
  },
  { title: "KeySet" },
)

/** The public keys of a project's tokens (RFC 7517, section 5). Its address is their issuer's. */
export const keySetRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...anybody,
    summary: "Show the public keys of the tokens of a project",
    description:
      "A JSON Web Key Set without the usual envelope. It verifies the tokens of subscribers: their `iss` is this address without `/jwks.json`.",
    response: KeySet,
    produces: "application/json",
    errors: ["not_found"],
    handle: async ({ params: { project_id } }) => {
      const keys = isUuid(project_id) ? await publishedKeys(store.read, { project_id }) : []
      if (keys.length === 0) return fail("not_found", "There is no such key set.")
      const headers = { "cache-control": `public, max-age=${KEPT_SECONDS}` }
      return Response.json({ keys }, { headers })
    },
  }),
]
