import { Type as t } from "@sinclair/typebox"
import { MOST_PASSWORD_CHARACTERS } from "../lib/password-strength"

const MOST_TOKEN_CHARACTERS = 200

/** Of every route here: passwords and tokens are short. */
export const LIMIT_BYTES = 65_536

/** Requests a minute and address, where there is no credential yet. */
export const PER_MINUTE = 60

const nullable = t.Union([t.String(), t.Null()])

export const Password = t.String({ maxLength: MOST_PASSWORD_CHARACTERS })
export const Token = t.String({ maxLength: MOST_TOKEN_CHARACTERS })
export const Email = t.String({ maxLength: 1000 })

export const ConsoleUser = t.Object({
  id: t.String(),
  email: t.String(),
  name: nullable,
  locale: nullable,
  timezone: nullable,
  mfa_enabled: t.Boolean(),
  operator: t.Boolean(),
  created_at: t.String(),
  last_login_at: nullable,
})

export const Seats = t.Array(t.Object({ id: t.String(), name: t.String(), role: t.String() }))

export const Session = t.Object({
  access_token: t.String(),
  refresh_token: t.String(),
  token_type: t.Literal("Bearer"),
  expires_in: t.Integer({ description: "Seconds." }),
  user: ConsoleUser,
  accounts: Seats,
})

export const Challenged = t.Object({
  mfa_required: t.Literal(true),
  mfa_challenge: t.Object({
    token: t.String(),
    methods: t.Array(t.String()),
    expires_at: t.String(),
  }),
})

export const SessionRecord = t.Object({
  id: t.String(),
  current: t.Boolean(),
  ip: nullable,
  user_agent: nullable,
  client_name: nullable,
  created_at: t.String(),
  last_used_at: t.String(),
  expires_at: t.String(),
})

export const Success = t.Object({ success: t.Literal(true) })
