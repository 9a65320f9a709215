import { isNull } from "drizzle-orm"
import {
  codeColumns,
  linkColumns,
  passwordHistoryColumns,
  refreshTokenColumns,
  sessionColumns,
  throttleColumns,
} from "../sign-in/person-columns"
import {
  bool,
  bytewiseText,
  id,
  index,
  int,
  json,
  ref,
  table,
  text,
  time,
  uniqueIndex,
} from "../store/columns"
import { life } from "../store/life"
import type { EnvironmentSettings } from "./environment-settings"

export const ENVIRONMENT_NAMES = ["live", "test"] as const

export type EnvironmentName = (typeof ENVIRONMENT_NAMES)[number]

export const APPLICATION_TYPES = ["web", "native", "game"] as const

export type ApplicationType = (typeof APPLICATION_TYPES)[number]

/** What people sign in to: a product of the project, with users of its own. */
export const applications = table(
  "applications",
  {
    id: id(),
    project_id: ref().notNull(),
    account_id: ref().notNull(),
    name: text().notNull(),
    slug: text().notNull(),
    type: text<ApplicationType>().notNull(),
    logo_url: text(),
    session_duration_minutes: int().notNull(),
    refresh_token_duration_days: int().notNull(),
    allowed_origins: json<string[]>().notNull(),
    redirect_urls: json<string[]>().notNull(),
    secret_hash: text().notNull(),
    /** The secret before the last rotation, and until when it works. */
    previous_secret_hash: text(),
    previous_expires_at: time(),
    /** When it was deleted: nothing answers for it, and its rows are being removed. */
    deleting_at: time(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (application) => [
    uniqueIndex("applications_by_slug").on(application.project_id, application.slug),
    index("applications_by_project").on(application.project_id, application.id),
    uniqueIndex("applications_by_secret").on(application.secret_hash),
    index("applications_by_previous_secret").on(application.previous_secret_hash),
  ],
)
life(applications, {
  owner: "project",
  ends: "never",
  counts: { name: "applications", where: isNull(applications.deleting_at) },
})

/** Users of `live` and of `test` know nothing of each other. Each application has both. */
export const environments = table(
  "auth_environments",
  {
    id: id(),
    project_id: ref().notNull(),
    application_id: ref().notNull(),
    name: text<EnvironmentName>().notNull(),
    /** Only what was changed. */
    settings: json<Partial<EnvironmentSettings>>().notNull(),
    /** Sealed. The settings show the end of it. */
    captcha_secret: text(),
    default_organization_id: ref().notNull(),
    /** Those of the Default organization, of which every new user becomes a member. Empty lets in every address. */
    allowed_email_domains: json<string[]>().notNull().default([]),
    /** That of the settings, by which a host is asked for its related origins. */
    passkey_rp_id: bytewiseText(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (environment) => [
    uniqueIndex("auth_environments_by_name").on(environment.application_id, environment.name),
    index("auth_environments_by_project").on(environment.project_id, environment.id),
    index("auth_environments_by_rp_id").on(environment.passkey_rp_id, environment.id),
  ],
)
life(environments, {
  owner: "project",
  ends: "never",
  names: { application_id: "applications" },
  sealed: {
    captcha_secret: {
      what: "secrets of captcha services",
      remedy: "`belfry applications environments set ID live captcha=…` with the secret",
      drop: "value",
    },
  },
})

/** Public: an app shows it to everybody. It says for which application and environment a request is. */
export const applicationKeys = table(
  "application_keys",
  {
    id: id(),
    project_id: ref().notNull(),
    application_id: ref().notNull(),
    /** Null for the legacy key, which names no environment. */
    environment: text<EnvironmentName>(),
    name: text().notNull(),
    key: text().notNull(),
    last_used_at: time(),
    created_at: time().notNull(),
  },
  (key) => [
    uniqueIndex("application_keys_by_key").on(key.key),
    index("application_keys_by_application").on(key.application_id, key.id),
    index("application_keys_by_project").on(key.project_id, key.id),
  ],
)
life(applicationKeys, {
  owner: "project",
  ends: "never",
  names: { application_id: "applications" },
})

export const USER_STATUSES = ["invited", "active", "suspended", "deleted"] as const

export type UserStatus = (typeof USER_STATUSES)[number]

export const MFA_METHODS = ["totp", "sms", "email", "passkey"] as const

export type MfaMethod = (typeof MFA_METHODS)[number]

/** An account elsewhere that a user signs in with. */
export interface UserIdentity {
  id: string
  /** `google`, `oidc-<name>`, `game-center` and the like. */
  provider: string
  provider_user_id: string
  email: string | null
  linked_at: string
}

/** The end users of a project. People of the console are apart. */
export const users = table(
  "users",
  {
    id: id(),
    project_id: ref().notNull(),
    application_id: ref().notNull(),
    environment_id: ref().notNull(),
    environment: text<EnvironmentName>().notNull(),
    email: text(),
    /** The email in the form in which addresses compare. */
    email_key: bytewiseText(),
    email_verified: bool().notNull(),
    /** In E.164. */
    phone_number: text(),
    phone_verified: bool().notNull(),
    name: text(),
    /** Email, number and name, in the form for searching. */
    search_key: text().notNull(),
    avatar_url: text(),
    locale: text(),
    metadata: json<Record<string, unknown>>().notNull(),
    app_metadata: json<Record<string, unknown>>().notNull(),
    status: text<UserStatus>().notNull(),
    status_reason: text(),
    password_hash: text(),
    is_anonymous: bool().notNull(),
    anonymous_device_id: text(),
    /** The second factors that are on, in the order in which they came. */
    mfa_methods: json<MfaMethod[]>().notNull().default([]),
    mfa_enabled_at: time(),
    /** What `user_identities` has of them. */
    identities: json<UserIdentity[]>().notNull().default([]),
    subscriber_id: ref(),
    /** The organization of the last session. */
    last_organization_id: ref(),
    first_activity_at: time(),
    last_login_at: time(),
    /** `YYYY-MM` of the last activity: each month counts a user once. */
    active_month: text(),
    created_at: time().notNull(),
    updated_at: time().notNull(),
  },
  (user) => [
    uniqueIndex("users_by_email").on(user.environment_id, user.email_key),
    uniqueIndex("users_by_phone").on(user.environment_id, user.phone_number),
    uniqueIndex("users_by_device").on(user.environment_id, user.anonymous_device_id),
    index("users_by_environment").on(user.environment_id, user.id),
    index("users_by_status").on(user.environment_id, user.status, user.id),
    index("users_by_project").on(user.project_id, user.id),
    index("users_of_address").on(user.project_id, user.email_key),
    index("users_of_phone").on(user.project_id, user.phone_number),
    index("users_of_subscriber").on(user.project_id, user.subscriber_id),
  ],
)
life(users, {
  owner: "project",
  ends: "never",
  names: { environment_id: "auth_environments" },
  counts: { name: "users", by: ["environment_id", "environment_id+status"] },
  personal: {
    found_by: { subscriber_id: "subscriber_id", address: "email_key", phone: "phone_number" },
  },
})

/** What a session says of the actor in place of its user. */
export interface SessionActor {
  /** The key or the person of the console. */
  id: string
  reason: string
}

export const userSessions = table(
  "user_sessions",
  {
    ...sessionColumns(),
    project_id: ref().notNull(),
    application_id: ref().notNull(),
    environment_id: ref().notNull(),
    organization_id: ref().notNull(),
    /** The ways in which the user proved their identity (RFC 8176). */
    amr: json<string[]>().notNull(),
    auth_time: time().notNull(),
    /** When the user last proved a second factor for what asks for one. */
    stepped_up_at: time(),
    /** It landed in an organization that demands a second factor, and has none yet. */
    lacks_factor: bool().notNull().default(false),
    /** Present while somebody of the project acts as the user. */
    act: json<SessionActor | null>(),
  },
  (session) => [
    index("user_sessions_by_user").on(session.user_id, session.id),
    index("user_sessions_open").on(session.user_id, session.revoked_at, session.id),
    index("user_sessions_by_expiry").on(session.expires_at),
    index("user_sessions_by_project").on(session.project_id, session.id),
  ],
)
life(userSessions, { owner: "project", ends: "after their end", names: { user_id: "users" } })

export const userRefreshTokens = table(
  "user_refresh_tokens",
  { ...refreshTokenColumns(), project_id: ref().notNull() },
  (token) => [
    index("user_refresh_tokens_by_session").on(token.session_id),
    index("user_refresh_tokens_by_expiry").on(token.expires_at),
    index("user_refresh_tokens_by_project").on(token.project_id, token.token_hash),
  ],
)
life(userRefreshTokens, {
  owner: "project",
  ends: "after their end",
  names: { session_id: "user_sessions" },
  sealed: {
    successor: {
      what: "sessions of end users that were just renewed",
      remedy: "nothing; a repeated request signs in again",
      drop: "value",
    },
  },
})

export const CODE_PURPOSES = [
  "login",
  "register",
  "reauthenticate",
  "change_email",
  "verify",
  /** Of second factors. They belong to a user: the identifier is the user's id and the method. */
  "mfa",
  "mfa_enroll",
  "step_up",
] as const

export type CodePurpose = (typeof CODE_PURPOSES)[number]

/** One code for each address or number and purpose: a new one takes the place of the old one. */
export const userCodes = table(
  "user_codes",
  {
    ...codeColumns(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    purpose: text<CodePurpose>().notNull(),
    /** The compared form of the address, or the number. */
    identifier: bytewiseText().notNull(),
    user_id: ref(),
    /** The message that brings it. */
    message_id: ref(),
  },
  (code) => [
    uniqueIndex("user_codes_by_identifier").on(code.environment_id, code.identifier, code.purpose),
    index("user_codes_by_user").on(code.user_id),
    index("user_codes_by_expiry").on(code.expires_at),
    index("user_codes_by_project").on(code.project_id, code.id),
  ],
)
life(userCodes, { owner: "project", ends: "after minutes" })

export const LINK_KINDS = [
  "magic_link",
  "verify_email",
  "password_reset",
  "invitation",
  "organization_invitation",
  /** What the page of a link hands to the application, for each kind. */
  "magic_link_code",
  "password_reset_code",
  "invitation_code",
  "organization_invitation_code",
] as const

export type LinkKind = (typeof LINK_KINDS)[number]

export const userLinks = table(
  "user_links",
  {
    ...linkColumns(),
    project_id: ref().notNull(),
    environment_id: ref().notNull(),
    kind: text<LinkKind>().notNull(),
    user_id: ref(),
    /** To which it was sent. */
    email: text().notNull(),
    redirect_url: text(),
    /** What the sign-in with it does: to register, for example. */
    purpose: text(),
    /** Of an organization. */
    invitation_id: ref(),
    message_id: ref(),
  },
  (link) => [
    index("user_links_by_user").on(link.user_id),
    index("user_links_by_invitation").on(link.invitation_id),
    index("user_links_by_expiry").on(link.expires_at),
    index("user_links_by_project").on(link.project_id, link.token_hash),
  ],
)
life(userLinks, { owner: "project", ends: "after days" })

export const userPasswordHistory = table(
  "user_password_history",
  { ...passwordHistoryColumns(), project_id: ref().notNull() },
  (entry) => [
    index("user_password_history_by_user").on(entry.user_id, entry.id),
    index("user_password_history_by_project").on(entry.project_id, entry.id),
  ],
)
life(userPasswordHistory, { owner: "project", ends: "with row", names: { user_id: "users" } })

export const userThrottles = table("user_throttles", throttleColumns(), (throttle) => [
  index("user_throttles_by_end").on(throttle.ends_at),
])
life(userThrottles, { owner: "instance", ends: "after hours" })
