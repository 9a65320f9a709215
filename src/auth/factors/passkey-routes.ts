import { Type as t } from "@sinclair/typebox"
import { Deleted, deleted, nameText } from "../../http/field-schemas"
import { listPage, pageQuery } from "../../http/page"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import { anything, id, text } from "../../lib/record-fields"
import type { AuthParts } from "../auth-parts"
import { anybodysRow, authRow, CACHEABLE } from "../auth-rows"
import { environmentOf, noEnvironment } from "../environments"
import { refuseImpersonated } from "../impersonation"
import { ownUser } from "../own-user"
import { SignInAnswer } from "../schemas"
import { clientOf } from "../sign-in"
import { claimedEmail } from "../sign-in-fields"
import { PasskeyAnswer } from "./passkey-proof"
import { beginSignIn, signIn } from "./passkey-sign-in"
import {
  beginRegistration,
  list,
  MadePasskey,
  Passkey,
  register,
  remove,
  rename,
  toResponse,
} from "./passkeys"
import { relatedOrigins } from "./relying-party"

const OWN: CallerKind[] = ["user"]
const APP: CallerKind[] = ["app"]
const PATH = "/v1/auth/passkeys"
const ONE = `${PATH}/{passkey_id}` as const

const creation = anything(
  { challenge: "Zk3vX9…", rp: { id: "example.com", name: "Shop" } },
  "For `PublicKeyCredential.parseCreationOptionsFromJSON` (WebAuthn Level 3).",
)
const request = anything(
  { challenge: "Zk3vX9…", rpId: "example.com", userVerification: "required" },
  "For `PublicKeyCredential.parseRequestOptionsFromJSON` (WebAuthn Level 3).",
)

const RegisteredPasskey = t.Object(
  {
    ...Passkey.properties,
    backup_codes: t.Optional(
      t.Array(text("k7m2p-x9q4r"), {
        description: "Only with the user's first second factor. They are shown only here.",
      }),
    ),
  },
  { title: "RegisteredPasskey" },
)

const SignInWish = t.Object({
  email: t.Optional(claimedEmail()),
  challenge_token: t.Optional(
    t.String({ description: "The token of a sign-in that waits for its second factor." }),
  ),
})

const BASE64 = "Zk3vX9"
const CREDENTIAL = { id: BASE64, rawId: BASE64, type: "public-key" }
const CHALLENGE_ID = "0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a"

/** Passkeys: a way in, and a second factor. */
export const passkeyRoutes = (parts: AuthParts): AnyRoute[] => [
  ...registrationRoutes(parts),
  ...signInRoutes(parts),
  ...ownRoutes(parts),
  originsRoute(parts),
]

const registrationRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", `${PATH}/register/options`, OWN, "-"),
    before_factor: true,
    summary: "Begin to register a passkey",
    description:
      "Give `public_key` to the browser, and its answer to `register/verify` within five minutes. A user with a second factor needs a session that proved one.",
    body: t.Object({ name: t.Optional(nameText()) }),
    example: { name: "Ann's phone" },
    response: t.Object({ challenge_id: id(), public_key: creation }),
    errors: ["mfa_required", "conflict"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      const { branding } = call.caller.project_settings
      const party_name = branding.name ?? own.environment.application.name
      const wish = { request: call.request, party_name, name: call.body.name }
      return { data: await beginRegistration(parts, own, wish) }
    },
  }),
  route({
    ...authRow("POST", `${PATH}/register/verify`, OWN, "-", 201),
    before_factor: true,
    summary: "Register a passkey",
    description:
      "Send what the browser made. A passkey is a second factor too: the user's first one brings ten backup codes, and the session has a second factor from then on.",
    body: MadePasskey,
    example: {
      challenge_id: CHALLENGE_ID,
      credential: {
        ...CREDENTIAL,
        response: { clientDataJSON: BASE64, attestationObject: BASE64, transports: ["internal"] },
      },
    },
    response: RegisteredPasskey,
    errors: ["invalid_verification", "conflict", "mfa_required"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      return { data: await register(parts, own, call, call.body) }
    },
  }),
]

const signInRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", `${PATH}/login/options`, APP, "-"),
    summary: "Begin to sign in with a passkey",
    description:
      "Give `public_key` to the browser, and its answer to `login/verify` or `mfa/step-up` within five minutes. With an `email` only a passkey of that user signs in; the answer does not tell whether there is one. With the `challenge_token` of a sign-in the passkey is its second factor.",
    body: SignInWish,
    example: {},
    response: t.Object({ challenge_id: id(), public_key: request }),
    errors: ["forbidden", "invalid_mfa"],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call)
      return { data: await beginSignIn(parts, environment, call.request, call.body) }
    },
  }),
  route({
    ...authRow("POST", `${PATH}/login/verify`, APP, "-"),
    summary: "Sign in with a passkey",
    description:
      "Send what the browser signed. No second factor is asked, because the device asked the person. Refused are a passkey whose counter falls, since it was copied, and a signature for another page.",
    body: PasskeyAnswer,
    example: {
      challenge_id: CHALLENGE_ID,
      credential: {
        ...CREDENTIAL,
        response: { clientDataJSON: BASE64, authenticatorData: BASE64, signature: BASE64 },
      },
    },
    response: SignInAnswer,
    errors: ["forbidden", "unauthorized", "invalid_mfa", "user_inactive"],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call)
      const { request, body } = call
      return { data: await signIn(parts, environment, request, body, clientOf(call)) }
    },
  }),
]

const ownRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", PATH, OWN, "-"),
    summary: "List your passkeys, newest first",
    description: "A user has at most 20.",
    query: pageQuery({}),
    response: Passkey,
    handle: async (call) => {
      const { store, cursors } = parts
      const { user } = await ownUser(store.read, call)
      return listPage(call, cursors, list(store.read, user), toResponse)
    },
  }),
  route({
    ...authRow("PATCH", ONE, OWN, "-"),
    summary: "Rename a passkey",
    description: "The name is for the user alone. It changes nothing at the authenticator.",
    body: t.Object({ name: nameText() }),
    example: { name: "Ann's phone" },
    response: Passkey,
    errors: ["not_found"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { user } = await ownUser(parts.store.read, call)
      const { passkey_id } = call.params
      const { name } = call.body
      const renaming = parts.store.tx((tx) => rename(tx, user, passkey_id, name))
      return { data: toResponse(await renaming) }
    },
  }),
  route({
    ...authRow("DELETE", ONE, OWN, "-"),
    summary: "Delete a passkey",
    description:
      "Needs a step-up. The last way into the account stays. The last second factor takes the backup codes with it.",
    response: Deleted,
    errors: ["not_found", "mfa_required", "conflict"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { passkey_id } = call.params
      const own = await ownUser(parts.store.read, call)
      await parts.store.tx((tx) => remove(tx, own, passkey_id, call.ip))
      return deleted(passkey_id)
    },
  }),
]

const originsRoute = ({ store }: AuthParts) =>
  route({
    ...anybodysRow("GET", "/.well-known/webauthn"),
    summary: "Show which other origins may ask for a host's passkeys",
    description:
      "For browsers (WebAuthn Level 3, section 5.11), without the usual envelope: the origins of environments whose `passkey_rp_id` is the host asked.",
    response: t.Object({ origins: t.Array(text("https://shop.example")) }, { title: "Origins" }),
    produces: "application/json",
    errors: ["not_found"],
    handle: async (call) => {
      const { hostname } = new URL(call.request.url)
      const origins = (await relatedOrigins(store.read, hostname)) ?? noEnvironment()
      return Response.json({ origins }, { headers: CACHEABLE })
    },
  })
