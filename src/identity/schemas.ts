import { Type as t } from "@sinclair/typebox"
import { ACTOR_TYPES } from "../audit-log/tables"
import { count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { MOST_PASSWORD_CHARACTERS } from "../sign-in/passwords"

const MOST_TOKEN_CHARACTERS = 200

/** Requests a minute and address, where there is no credential yet. */
export const PER_MINUTE = 60

export const Password = t.String({ maxLength: MOST_PASSWORD_CHARACTERS })
export const Token = t.String({ maxLength: MOST_TOKEN_CHARACTERS })
export const LONG_EMAIL = { maxLength: 1000 }
export const Email = t.String(LONG_EMAIL)

export const ConsoleUser = t.Object(
  {
    id: id(),
    email: text("ann@example.com"),
    name: maybe(text("Ann")),
    locale: maybe(text("en")),
    timezone: maybe(text("Europe/Vienna")),
    mfa_enabled: flag(true),
    operator: flag(false, "Whether this person operates the instance."),
    created_at: time(),
    last_login_at: maybe(time()),
  },
  { title: "ConsoleUser" },
)

export const Seats = t.Array(
  t.Object({
    id: id(),
    name: text("Acme"),
    role: word(["owner", "admin", "billing_admin", "member"]),
  }),
  { description: "The accounts of the person." },
)

export const Session = t.Object(
  {
    access_token: text(
      "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIwMTk5…",
      "The token for `Authorization: Bearer`.",
    ),
    refresh_token: text("rt_Zk3vX9…", "Works once. Exchange it at `POST /v1/session/refresh`."),
    token_type: t.Literal("Bearer"),
    expires_in: count(900, "Seconds until the access token expires."),
    user: ConsoleUser,
    accounts: Seats,
  },
  { title: "Session" },
)

export const Challenged = t.Object(
  {
    mfa_required: t.Literal(true),
    mfa_challenge: t.Object({
      token: text("mc_Zk3vX9…"),
      methods: t.Array(word(["totp", "backup_code"])),
      expires_at: time(),
    }),
  },
  { title: "MfaChallenge" },
)

export const PageSession = t.Object(
  {
    access_token: text("eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIwMTk5…", "The page keeps it in memory."),
    expires_in: count(900, "Seconds until the access token expires."),
    user: maybe(ConsoleUser),
    accounts: Seats,
    project_id: maybe(id("The project of the key whose rights the page has.")),
  },
  { title: "PageSession" },
)

export const Credentials = t.Object({ email: Email, password: Password })
export const MfaAnswer = t.Object({ token: Token, code: t.String({ maxLength: 64 }) })

/** Shown once, at the start of an enrolment. */
export const Enrolled = t.Object(
  {
    secret: text("JBSWY3DPEHPK3PXP"),
    otpauth_url: text("otpauth://totp/Belfry:ann%40example.com?secret=JBSWY3DPEHPK3PXP"),
    qr_code: text("data:image/svg+xml;base64,PHN2Zy4uLg==", "An SVG image as a data URL."),
    backup_codes: t.Array(text("k3vx-9zqt")),
  },
  { title: "MfaEnrolment" },
)

export const SessionRecord = t.Object(
  {
    id: id(),
    current: flag(true, "Whether this session made the request."),
    ip: maybe(text("203.0.113.7")),
    user_agent: maybe(text("Mozilla/5.0")),
    client_name: rarely(text("belfry on laptop")),
    created_at: time(),
    last_used_at: time(),
    expires_at: time(),
  },
  { title: "ConsoleSession" },
)

export const Success = t.Object({ success: t.Literal(true) }, { title: "Success" })

export const KeyStatus = word(["active", "revoked", "expired"])

const key = {
  id: id(),
  project_id: id(),
  name: text("website"),
  mode: t.Literal("live"),
  prefix: text("svc_live_a1b2c3d4", "The first 17 characters of the key."),
  last4: text("9zQx"),
  scopes: t.Array(text("email:send")),
  domain_id: rarely(id("The only domain that the key can send from.")),
  status: KeyStatus,
  ip_addresses: t.Array(text("203.0.113.0/24"), {
    description: "Addresses from which the key works. An empty list allows all addresses.",
  }),
  expires_at: rarely(time()),
  last_used_at: maybe(time("The time of the last use, updated at most once a minute.")),
  last_used_ip: maybe(text("203.0.113.7")),
  created_by: t.Object({ type: word(ACTOR_TYPES), id: maybe(id()) }),
  created_at: time(),
  revoked_at: rarely(time()),
}

export const ApiKey = t.Object(key, { title: "ApiKey" })

export const ApiKeyWithSecret = t.Object(
  { ...key, key: text("svc_live_a1b2c3d4…", "The key itself. It cannot be shown again.") },
  { title: "ApiKeyWithSecret" },
)

export const RevokedApiKey = t.Object(
  { ...key, deleted: t.Literal(true) },
  { title: "RevokedApiKey" },
)
