import { type Static, Type as t } from "@sinclair/typebox"
import { ONE_LINE, orNull } from "../../http/field-schemas"
import { flag, maybe, rarely, text, time } from "../../lib/record-fields"
import { secretText } from "../../providers/credentials"
import { environmentWord } from "../application-schemas"
import { targetFields } from "../auth-rows"

/** As the contract shows it (52, section 1). */
export const OAuthConfig = t.Object(
  {
    provider: text("google"),
    environment: environmentWord(),
    client_id: text("4711.apps.example.com"),
    client_secret: maybe(text("****f3Qx", "Masked but for its end.")),
    scopes: t.Array(text("email"), { description: "Empty: those of the provider's sign-in." }),
    enabled: flag(true),
    issuer: rarely(text("https://login.example.com")),
    callback_url: text(
      "https://belfry.example.com/v1/auth/oauth/google/callback",
      "Register this address at the provider.",
    ),
    updated_at: time(),
  },
  { title: "OAuthConfig" },
)

export const OAuthConfigs = t.Array(OAuthConfig)

const MOST_SCOPES = 20
/** RFC 6749, section 3.3. */
const SCOPE = "^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,128}$"

const line = (maxLength: number, description?: string) =>
  t.String({ minLength: 1, maxLength, pattern: ONE_LINE, ...(description && { description }) })

const given = (...[maxLength, description]: Parameters<typeof line>) =>
  t.Optional(orNull(line(maxLength, description)))

export const OAuthConfigInput = t.Object({
  environment: targetFields.environment,
  client_id: line(255),
  client_secret: t.Optional(
    orNull({
      ...secretText(4096),
      description: "Without it, the stored one stays. Null takes it away.",
    }),
  ),
  scopes: t.Optional(t.Array(t.String({ pattern: SCOPE }), { maxItems: MOST_SCOPES })),
  enabled: t.Boolean(),
  issuer: given(2048, "For `oidc-<name>`: the name that its discovery document has for itself."),
  team_id: given(64, "For `apple`."),
  key_id: given(64, "For `apple`: the id of `private_key`."),
  private_key: t.Optional(
    orNull(
      t.String({
        maxLength: 4096,
        description: "For `apple`: the PEM of its .p8 file. Without it, the stored one stays.",
      }),
    ),
  ),
})

export type OAuthConfigChange = Static<typeof OAuthConfigInput>

export const oauthConfigQuery = t.Object({ environment: targetFields.environment })
