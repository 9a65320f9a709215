import {
  bool,
  id,
  index,
  int,
  primaryKey,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"

/** People who sign in to run accounts and projects. End users of a project live elsewhere. */
export const consoleUsers = table(
  "console_users",
  {
    id: id(),
    /** As its owner wrote it; `email_key` is the form in which addresses compare. */
    email: text().notNull(),
    email_key: text().notNull(),
    name: text(),
    locale: text(),
    timezone: text(),
    password_hash: text().notNull(),
    /** Runs the instance. */
    operator: bool().notNull(),
    status: text<"active" | "locked">().notNull(),
    /** Sealed. Present while codes are asked for at sign-in. */
    mfa_secret: text(),
    /** Sealed: the secret and the hashed recovery codes of an enrolment that waits for its proof. */
    mfa_pending: text(),
    mfa_pending_at: time(),
    /** The time step of the last code taken: no code works twice (RFC 6238, 5.2). */
    mfa_last_step: int(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
    last_login_at: time(),
  },
  (user) => [uniqueIndex("console_users_by_email").on(user.email_key)],
)

/** One sign-in: all refresh tokens that descend from it die with it. */
export const consoleSessions = table(
  "console_sessions",
  {
    id: id(),
    user_id: ref().notNull(),
    ip: text(),
    user_agent: text(),
    client_name: text(),
    created_at: time().notNull(),
    last_used_at: time().notNull(),
    expires_at: time().notNull(),
    revoked_at: time(),
  },
  (session) => [
    index("console_sessions_by_user").on(session.user_id, session.id),
    index("console_sessions_by_expiry").on(session.expires_at),
  ],
)

/** Used ones stay until they expire, so that a second use is noticed. */
export const refreshTokens = table(
  "refresh_tokens",
  {
    token_hash: id(),
    session_id: ref().notNull(),
    created_at: time().notNull(),
    used_at: time(),
    /** Sealed: the token that took its place, for a request that was sent twice. */
    successor: text(),
    expires_at: time().notNull(),
  },
  (token) => [
    index("refresh_tokens_by_session").on(token.session_id),
    index("refresh_tokens_by_expiry").on(token.expires_at),
  ],
)

/** RFC 8628: a program without a browser asks a person elsewhere to let it in. */
export const deviceCodes = table(
  "device_codes",
  {
    id: id(),
    device_code_hash: text().notNull(),
    user_code_hash: text().notNull(),
    client_name: text().notNull(),
    ip: text(),
    status: text<"pending" | "approved" | "denied" | "used">().notNull(),
    user_id: ref(),
    /** Grows by five seconds whenever the program asks too early. */
    interval_seconds: int().notNull(),
    last_polled_at: time(),
    created_at: time().notNull(),
    expires_at: time().notNull(),
  },
  (code) => [
    uniqueIndex("device_codes_by_device").on(code.device_code_hash),
    uniqueIndex("device_codes_by_user").on(code.user_code_hash),
    index("device_codes_by_expiry").on(code.expires_at),
  ],
)

/** The password was right; the second factor is awaited. */
export const mfaChallenges = table(
  "mfa_challenges",
  {
    token_hash: id(),
    user_id: ref().notNull(),
    attempts: int().notNull(),
    used_at: time(),
    created_at: time().notNull(),
    expires_at: time().notNull(),
  },
  (challenge) => [index("mfa_challenges_by_expiry").on(challenge.expires_at)],
)

/** Each opens the second door once. */
export const backupCodes = table(
  "backup_codes",
  {
    user_id: ref().notNull(),
    code_hash: text().notNull(),
    used_at: time(),
    created_at: time().notNull(),
  },
  (code) => [primaryKey({ columns: [code.user_id, code.code_hash] })],
)

export const passwordResets = table(
  "password_resets",
  {
    token_hash: id(),
    user_id: ref().notNull(),
    used_at: time(),
    created_at: time().notNull(),
    expires_at: time().notNull(),
  },
  (reset) => [
    index("password_resets_by_user").on(reset.user_id),
    index("password_resets_by_expiry").on(reset.expires_at),
  ],
)

/** The last few passwords of a user, the present one among them. */
export const passwordHistory = table(
  "password_history",
  {
    id: id(),
    user_id: ref().notNull(),
    password_hash: text().notNull(),
    created_at: time().notNull(),
  },
  (entry) => [index("password_history_by_user").on(entry.user_id, entry.id)],
)

/** Attempts at something that can be guessed. The subject is a MAC: it names nobody. */
export const throttles = table(
  "throttles",
  {
    subject: id(),
    used: int().notNull(),
    ends_at: time().notNull(),
  },
  (throttle) => [index("throttles_by_end").on(throttle.ends_at)],
)
