import { type Static, Type as t } from "@sinclair/typebox"
import {
  anything,
  count,
  EXAMPLE_TIME,
  flag,
  id,
  maybe,
  rarely,
  text,
  time,
  word,
} from "../lib/record-fields"
import { ENVIRONMENT_NAMES, MFA_METHODS, USER_STATUSES } from "./tables"

/** An account elsewhere that a user signs in with (contract 52, section 1). */
export const Identity = t.Object(
  {
    id: id(),
    provider: text("google"),
    provider_user_id: text("108177431…"),
    email: maybe(text("ann@example.com")),
    linked_at: time(),
  },
  { title: "Identity" },
)

/** An end user, as the contract shows them (50, section 1). */
export const UserRecord = t.Object(
  {
    id: id(),
    application_id: id(),
    environment: word(ENVIRONMENT_NAMES),
    email: maybe(text("ann@example.com")),
    email_verified: flag(true),
    name: maybe(text("Ann")),
    avatar_url: rarely(text("https://example.com/ann.png")),
    phone_number: rarely(text("+4915112345678")),
    phone_verified: flag(false),
    status: word(USER_STATUSES),
    mfa_enabled: flag(false),
    mfa_methods: t.Array(word(MFA_METHODS)),
    is_anonymous: flag(false),
    anonymous_device_id: rarely(text("4f2a9c1e-device")),
    identities: t.Array(Identity),
    locale: maybe(text("en")),
    metadata: anything({ plan: "gold" }),
    app_metadata: t.Optional(
      anything({ role: "editor" }, "Only servers and people of the console see it."),
    ),
    subscriber_id: rarely(id("The subscriber that this user is.")),
    first_activity_at: maybe(time()),
    last_login_at: maybe(time()),
    created_at: time(),
    updated_at: time(),
  },
  { title: "User" },
)

export const Tokens = t.Object({
  access_token: text("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIwMTk5…", "For `Authorization: Bearer`."),
  refresh_token: text("belfry_refresh_Zk3vX9…", "Works once."),
  token_type: t.Literal("Bearer"),
  expires_in: count(3600, "Seconds until the access token expires."),
})

export const StartedSession = t.Object({ id: id(), created_at: time(), expires_at: time() })

export const ActiveOrganization = t.Object({
  id: id(),
  name: text("Default"),
  role: text("member"),
})

/** What a sign-in answers (contract 50, section 1). */
export const AuthResult = t.Object(
  {
    user: UserRecord,
    tokens: rarely(Tokens),
    session: rarely(StartedSession),
    organization: ActiveOrganization,
    is_new: flag(false),
  },
  { title: "AuthResult" },
)

/** In its place, while a second factor is awaited. */
export const FactorAwaited = t.Object(
  {
    mfa_required: t.Literal(true),
    mfa_challenge: t.Object({
      token: text("belfry_mfa_Zk3vX9…"),
      methods: t.Array(word(["totp", "sms", "email", "backup_code", "passkey"])),
      expires_at: time(),
    }),
  },
  { title: "FactorAwaited" },
)

/** The answer of a way in: a session, or the question for the second factor. */
export const SignInAnswer = t.Union([AuthResult, FactorAwaited])

export type AuthResultRecord = Static<typeof AuthResult>

/** The answer of a route that signs in; 201 tells of a new user. */
export const signedInAs = <Answer extends Static<typeof SignInAnswer>>(data: Answer) => ({
  data,
  status: "is_new" in data && data.is_new ? 201 : 200,
})

export const Success = t.Object({ success: t.Literal(true) })

export const SUCCESS = { data: { success: true as const } }

export const OtpSent = t.Object(
  {
    sent: t.Literal(true),
    destination: text("a•••@example.com"),
    expires_in: count(600),
    resend_after: count(30),
  },
  { title: "OtpSent" },
)

const seconds = (what: string) => count(1_795_000_000, `${what}, in Unix seconds.`)

/** What an access token says (contract 50, section 1). */
export const AccessClaims = t.Object({
  iss: text("https://belfry.example.com/v1/auth/applications/0199a1c2-…"),
  sub: id("The user."),
  aud: id("The application."),
  env: word(ENVIRONMENT_NAMES),
  sid: id("The session."),
  jti: id(),
  iat: seconds("When the token was made"),
  exp: seconds("When the token ends"),
  org_id: id("The active organization."),
  org_role: text("member"),
  org_permissions: t.Array(text("invoices:read")),
  orgs: t.Array(t.Object({ id: id(), role: text("member") })),
  orgs_truncated: flag(false),
  amr: t.Array(text("pwd")),
  auth_time: seconds("When the user proved their identity"),
  act: t.Optional(
    t.Object({ sub: text("0199a1c2-…", "The key or the person that acts as the user.") }),
  ),
  app_metadata: anything({ role: "editor" }),
})

export const UserSession = t.Object(
  {
    id: id(),
    current: flag(true),
    device: maybe(text("Firefox on Linux")),
    ip: maybe(text("192.0.2.7")),
    organization_id: id(),
    created_at: time(),
    last_used_at: t.String({ format: "date-time", examples: [EXAMPLE_TIME] }),
    expires_at: time(),
  },
  { title: "UserSession" },
)
