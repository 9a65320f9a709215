import { type Static, Type as t } from "@sinclair/typebox"
import { fail } from "../../core/errors"
import { isForm } from "../../http/body"
import { type AnyRoute, anonymousRow, route } from "../../http/route"
import { type HostCookie, readCookie, setCookie } from "../../lib/cookie"
import { count, maybe, text } from "../../lib/record-fields"
import type { AuthParts } from "../auth-parts"
import { authRow, targetFields } from "../auth-rows"
import { environmentOf } from "../environments"
import { AuthResult, FactorAwaited, SignInAnswer, signedInAs } from "../schemas"
import { clientOf } from "../sign-in"
import { redirectField } from "../sign-in-fields"
import { arrive, beginFlow, FLOW_SECONDS, randomText } from "./oauth-flows"
import { requireName } from "./oauth-providers"
import { exchangeCode, offeredProviders, signInByIdToken } from "./oauth-sign-in"

const MOST_STATE = 2000
const MOST_SCOPES = 1000
/** Codes of some providers are signed and sealed texts. */
const MOST_CODE = 8192
const MOST_TOKEN = 16_384

export const challengeField = () =>
  t.String({
    pattern: "^[A-Za-z0-9_-]{43}$",
    description: "S256 of a `code_verifier` (RFC 7636), which the exchange must bring then.",
  })

const AuthorizeQuery = t.Object({
  redirect_url: redirectField(),
  state: t.Optional(
    t.String({ minLength: 1, maxLength: MOST_STATE, description: "You get it back." }),
  ),
  code_challenge: t.Optional(challengeField()),
  scopes: t.Optional(
    t.String({
      maxLength: MOST_SCOPES,
      pattern: "^[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*$",
      description: "In place of those of the configuration, with spaces or commas between them.",
    }),
  ),
  mode: t.Optional(
    t.Union([t.Literal("json"), t.Literal("redirect")], {
      description:
        "`json`, the default, answers the address, and `redirect` sends the browser there.",
    }),
  ),
  application_key: t.Optional(
    t.String({ maxLength: 200, description: "In place of the header, which a link cannot send." }),
  ),
})

export const Authorization = t.Object(
  {
    authorization_url: text("https://accounts.google.com/o/oauth2/v2/auth?client_id=…"),
    state: text("Zk3vX9…", "The redirect brings the same text back."),
  },
  { title: "OAuthAuthorization" },
)

const Provider = t.Object(
  { provider: text("google"), name: text("Google") },
  { title: "OAuthProviderName" },
)

const optional = (maxLength: number, description: string) =>
  t.Optional(t.String({ maxLength, description }))

/** What providers send, by a redirect or a form. */
const answerFields = {
  state: optional(MOST_STATE, "It names the sign-in that began."),
  code: optional(MOST_CODE, "It works once."),
  error: optional(MOST_STATE, "It says why the provider gives no code (RFC 6749)."),
  error_description: optional(MOST_CODE, "The same, for developers."),
  iss: optional(MOST_STATE, "It names the provider (RFC 9207)."),
}

const Arrival = t.Object({
  ...answerFields,
  code_verifier: t.Optional(t.String({ maxLength: 128 })),
  ...targetFields,
})

const provider_tokens = t.Object(
  {
    access_token: text("ya29.a0AfB…"),
    expires_in: maybe(count(3599)),
    scope: maybe(text("openid email profile")),
  },
  { description: "They are the provider's. Only this answer has them." },
)

const Exchanged = t.Union([
  t.Object({ ...AuthResult.properties, provider_tokens }, { title: "OAuthResult" }),
  t.Object({ ...FactorAwaited.properties, provider_tokens }, { title: "OAuthFactorAwaited" }),
])

const IdToken = t.Object({
  id_token: t.String({ minLength: 1, maxLength: MOST_TOKEN }),
  nonce: t.Optional(t.String({ minLength: 1, maxLength: MOST_STATE })),
  access_token: t.Optional(t.String({ minLength: 1, maxLength: MOST_TOKEN })),
  ...targetFields,
})

const ONE = "/v1/auth/oauth/{provider}" as const

/** Sign-in with an account elsewhere. */
export const oauthRoutes = (parts: AuthParts): AnyRoute[] => [
  providersRoute(parts),
  authorizeRoute(parts),
  ...callbackRoutes(parts),
  idTokenRoute(parts),
]

const providersRoute = ({ store }: AuthParts) =>
  route({
    ...authRow("GET", "/v1/auth/oauth/providers", ["app"], "-"),
    summary: "List the providers of social sign-in",
    description: "Only those that are set up and enabled.",
    response: t.Array(Provider),
    handle: async (call) => {
      const environment = await environmentOf(store.read, call)
      return { data: await offeredProviders(store.read, environment) }
    },
  })

const authorizeRoute = (parts: AuthParts) =>
  route({
    ...authRow("GET", `${ONE}/authorize`, ["app"], "-", 200, 302),
    credentials: ["application_key", "code_challenge"],
    summary: "Begin a sign-in with an account elsewhere",
    description:
      "A page sends its `code_challenge`, opens `authorization_url`, and exchanges the code with the verifier. With `mode` `redirect` this address is a link: it sends the browser on, with a cookie that the same browser must bring back.",
    query: AuthorizeQuery,
    response: Authorization,
    errors: ["not_found", "forbidden", "invalid_url", "provider_error"],
    handle: async (call) => {
      const { redirect_url, state, code_challenge, scopes = "", mode } = call.query
      const { provider } = call.params
      const environment = await environmentOf(parts.store.read, call)
      const asked = scopes.split(/[ ,]+/).filter((one) => one !== "")
      const wish = { provider, redirect_url, state, code_challenge, scopes: asked }
      if (mode !== "redirect") return { data: await beginFlow(parts, environment, wish) }
      const cookie = cookieIn(call.request, provider) ?? randomText()
      const { authorization_url } = await beginFlow(parts, environment, { ...wish, cookie })
      return sendOn(authorization_url, { "set-cookie": bindingCookie(provider, cookie) }) as never
    },
  })

/** One for all sign-ins that a browser has open at once. */
function bindingCookie(provider: string, value: string): string {
  const same_site = postsForm(provider) ? "None" : "Lax"
  return setCookie({ name: nameOfCookie(provider), value, max_age: FLOW_SECONDS, same_site })
}

/** Apple answers by a form of its own site, with which a browser sends no cookie but `SameSite=None`. */
const postsForm = (provider: string) => provider === "apple"

const nameOfCookie = (provider: string): HostCookie["name"] =>
  postsForm(provider) ? "__Host-belfry-oauth-form" : "__Host-belfry-oauth"

const cookieIn = ({ headers }: Request, provider: string) =>
  readCookie(headers.get("cookie"), nameOfCookie(provider))

const sendOn = (location: string, headers: Record<string, string> = {}) =>
  new Response(null, {
    status: 302,
    headers: {
      ...{ location, "cache-control": "no-store", "referrer-policy": "no-referrer" },
      ...headers,
    },
  })

const callbackRoutes = (parts: AuthParts): AnyRoute[] => {
  const takeAnswer = async (provider: string, answer: Static<typeof Arrival>, request: Request) => {
    requireName(provider)
    return sendOn(await arrive(parts, provider, answer, cookieIn(request, provider))) as never
  }
  return [
    route({
      ...anonymousRow("GET", `${ONE}/callback`, 302),
      credentials: ["code", "state"],
      summary: "Take the answer of a provider",
      description:
        "The provider sends the browser here. The browser lands at the `redirect_url` with the application's `state` and a one-time `code`, which works for a minute, or with an `error`.",
      query: t.Object(answerFields),
      errors: ["unauthorized", "not_found"],
      handle: ({ params, query, request }) => takeAnswer(params.provider, query, request),
    }),
    route({
      ...authRow("POST", `${ONE}/callback`, ["none", "app", "key"], "-", 200, 201, 302),
      per_minute: 60,
      takes_form: true,
      summary: "Exchange the code of a redirect for a session",
      description:
        "The code works once, for the application and environment that began. A provider may also post its answer here as a form, which is taken as by `GET`.",
      body: Arrival,
      example: { code: "belfry_code_Zk3vX9…", state: "Zk3vX9…" },
      response: Exchanged,
      errors: [
        ...(["unauthorized", "not_found", "forbidden", "conflict"] as const),
        ...(["user_inactive", "payment_required", "provider_error"] as const),
      ],
      handle: async (call) => {
        const { params, body, request, caller } = call
        if (isForm(request)) return takeAnswer(params.provider, body, request)
        if (caller.kind === "none") return refuseNobody()
        const { code = "", state = "", code_verifier } = body
        const environment = await environmentOf(parts.store.read, call, body)
        const shown = { code, state, code_verifier }
        const data = await exchangeCode(parts, environment, params.provider, shown, clientOf(call))
        return signedInAs(data)
      },
    }),
  ]
}

const refuseNobody = () =>
  fail("unauthorized", "Send a public key of the application in X-Application-Key, or an API key.")

const idTokenRoute = (parts: AuthParts) =>
  route({
    ...authRow("POST", `${ONE}/id-token`, ["app", "key"], "auth:write", 200, 201),
    summary: "Sign in with an id token of a provider",
    description:
      "For apps that sign in by the provider's own library. The token must be made for the `client_id` of the configuration, and have the `nonce` where you send one.",
    body: IdToken,
    example: { id_token: "eyJhbGciOiJSUzI1NiIs…", nonce: "n-0S6_WzA2Mj" },
    response: SignInAnswer,
    errors: [
      ...(["unauthorized", "not_found", "forbidden", "conflict"] as const),
      ...(["user_inactive", "payment_required", "provider_error"] as const),
    ],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      const { provider } = call.params
      const data = await signInByIdToken(parts, environment, provider, call.body, clientOf(call))
      return signedInAs(data)
    },
  })
