import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, route } from "../http/route"
import { count, flag, id, maybe, rarely, text, word } from "../lib/record-fields"
import { publishedKeys } from "../signing-keys/signing-keys"
import type { AuthParts } from "./auth-parts"
import { anybodysRow, authRow, CACHEABLE } from "./auth-rows"
import { ENVIRONMENT_DEFAULTS, METHODS, type PasswordPolicy } from "./environment-settings"
import { environmentNamed, environmentOf, noEnvironment } from "./environments"
import { offeredProviders } from "./social/oauth-sign-in"

const Jwks = t.Object(
  {
    keys: t.Array(
      t.Object({
        kty: word(["EC"]),
        crv: word(["P-256"]),
        x: text("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
        y: text("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
        kid: id(),
        alg: word(["ES256"]),
        use: word(["sig"]),
      }),
    ),
  },
  { title: "ApplicationKeySet" },
)

const OpenIdConfiguration = t.Object(
  {
    issuer: text(
      "https://mail.example.com/v1/auth/applications/0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a",
    ),
    jwks_uri: text("https://mail.example.com/v1/auth/applications/0199a1c2-…/jwks.json"),
    id_token_signing_alg_values_supported: t.Array(word(["ES256"])),
    authorization_endpoint: text("https://mail.example.com/v1/auth/applications/0199a1c2-…"),
    response_types_supported: t.Array(word(["id_token"])),
    subject_types_supported: t.Array(word(["public"])),
  },
  { title: "OpenIdConfiguration" },
)

const PasswordRequirements = t.Object(
  {
    min_length: count(8),
    require_uppercase: flag(true),
    require_lowercase: flag(true),
    require_numbers: flag(true),
    require_special: flag(true),
  },
  { title: "PasswordRequirements" },
)

const requirementsOf = ({ history: _, ...policy }: PasswordPolicy) => policy

const AuthConfig = t.Object(
  {
    methods: t.Object(
      Object.fromEntries(METHODS.map((name) => [name, flag(ENVIRONMENT_DEFAULTS.methods[name])])),
    ),
    oauth_providers: t.Array(text("google")),
    password_requirements: PasswordRequirements,
    mfa_policy: word(["optional", "off", "required"]),
    branding: t.Object({
      name: maybe(text("Shop")),
      logo_url: maybe(text("https://example.com/logo.png")),
      primary_color: rarely(text("#2457c5")),
      support_url: rarely(text("https://example.com/help")),
    }),
  },
  { title: "AuthConfig" },
)

/** What everybody may know of an application, and what its pages need before anybody signs in. */
export const publicRoutes = (parts: AuthParts): AnyRoute[] => [
  ...issuerRoutes(parts),
  ...configRoutes(parts),
]

const ONE = "/v1/auth/applications/{application_id}"

const issuerRoutes = ({ store, tokens }: AuthParts): AnyRoute[] => {
  const requireApplication = async (application_id: string): Promise<string> => {
    const found = await environmentNamed(store.read, application_id, "live")
    return (found ?? noEnvironment()).application.id
  }
  return [
    route({
      ...anybodysRow("GET", `${ONE}/jwks.json`),
      summary: "Show the public keys of an application's tokens",
      description:
        "A JSON Web Key Set (RFC 7517) without the usual envelope. It verifies access tokens of users, whose `iss` is this address without `/jwks.json`.",
      response: Jwks,
      produces: "application/json",
      errors: ["not_found"],
      handle: async ({ params }) => {
        const application_id = await requireApplication(params.application_id)
        const keys = await publishedKeys(store.read, { application_id })
        return Response.json({ keys }, { headers: CACHEABLE })
      },
    }),
    route({
      ...anybodysRow("GET", `${ONE}/.well-known/openid-configuration`),
      summary: "Show where the keys of an application are",
      description:
        "For verifiers that know the issuer alone, in the form of OpenID Connect Discovery and without the usual envelope. This is no OpenID provider: the last three fields are there because verifiers need them.",
      response: OpenIdConfiguration,
      produces: "application/json",
      errors: ["not_found"],
      handle: async ({ params }) => {
        const issuer = tokens.issuerOf(await requireApplication(params.application_id))
        const found = {
          issuer,
          jwks_uri: `${issuer}/jwks.json`,
          id_token_signing_alg_values_supported: ["ES256"],
          authorization_endpoint: issuer,
          response_types_supported: ["id_token"],
          subject_types_supported: ["public"],
        }
        return Response.json(found, { headers: CACHEABLE })
      },
    }),
  ]
}

const configRoutes = ({ store }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", "/v1/auth/config", ["app"], "-"),
    summary: "Show what a sign-in page needs",
    description:
      "The ways in that are on, the rules for passwords, and how pages look. Without a name or a logo of the project, `branding` has those of the application.",
    response: AuthConfig,
    handle: async (call) => {
      const environment = await environmentOf(store.read, call)
      const { application, settings } = environment
      const offered = await offeredProviders(store.read, environment)
      const { branding } = call.caller.project_settings
      return {
        data: {
          methods: settings.methods,
          oauth_providers: offered.map(({ provider }) => provider),
          password_requirements: requirementsOf(settings.password_policy),
          mfa_policy: settings.mfa.policy,
          branding: {
            ...branding,
            name: branding.name ?? application.name,
            logo_url: branding.logo_url ?? application.logo_url,
          },
        },
      }
    },
  }),
  route({
    ...authRow("GET", "/v1/auth/password-requirements", ["app"], "-"),
    any_environment: true,
    summary: "Show the rules for passwords",
    description: "A legacy key gets the rules that hold in every environment.",
    response: PasswordRequirements,
    handle: async (call) => {
      const bound = call.caller.application?.environment
      const { settings } = bound
        ? await environmentOf(store.read, call)
        : { settings: ENVIRONMENT_DEFAULTS }
      return { data: requirementsOf(settings.password_policy) }
    },
  }),
]
