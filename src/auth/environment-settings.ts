/** The ways in that an environment may turn off. */
export const METHODS = [
  "password",
  "magic_link",
  "email_otp",
  "phone_otp",
  "oauth",
  "passkey",
  "anonymous",
] as const

export type SignInMethod = (typeof METHODS)[number]

export const MAIL_TYPES = [
  "verify_email",
  "magic_link",
  "email_otp",
  "password_reset",
  "password_changed",
  "mfa_code",
  "invitation",
  "organization_invitation",
  "email_changed",
  "new_device",
] as const

export type MailType = (typeof MAIL_TYPES)[number]

export const CAPTCHA_PROVIDERS = ["turnstile", "hcaptcha", "recaptcha"] as const

/** What a password needs beside what every password of an end user needs. */
export interface PasswordPolicy {
  min_length: number
  require_uppercase: boolean
  require_lowercase: boolean
  require_numbers: boolean
  require_special: boolean
  /** How many of the last passwords are refused. */
  history: number
}

/** A person of a review. Their code never changes, and they get no message. */
export interface TestIdentifier {
  email?: string
  phone_number?: string
  code: string
}

/** The Environment of the contract (50, section 2), without its name and what follows from the row. */
export interface EnvironmentSettings {
  /** Null is that of the application. */
  allowed_origins: string[] | null
  redirect_urls: string[] | null
  blocked_email_domains: string[]
  passkey_rp_id: string | null
  bundle_ids: string[]
  android_packages: string[]
  methods: Record<SignInMethod, boolean>
  session: { max_sessions: number | null }
  password_policy: PasswordPolicy
  mfa: { policy: "off" | "optional" | "required"; methods: string[] }
  hide_account_existence: boolean
  require_verified_email: boolean
  organization_creation: "none" | "members"
  sender: { email: string; name: string | null } | null
  /** A template of the project by its id or name, in place of the default text. */
  templates: Partial<Record<MailType, string>>
  /** Names of `app_metadata` that the access token shows. */
  token_claims: string[]
  /** The secret shows its end. The whole one is sealed, in a column of its own. */
  captcha: { provider: (typeof CAPTCHA_PROVIDERS)[number]; secret: string } | null
  test_identifiers: TestIdentifier[]
  sms_origin: string | null
  android_sms_hash: string | null
}

export const ENVIRONMENT_DEFAULTS: EnvironmentSettings = {
  allowed_origins: null,
  redirect_urls: null,
  blocked_email_domains: [],
  passkey_rp_id: null,
  bundle_ids: [],
  android_packages: [],
  methods: {
    password: true,
    magic_link: true,
    email_otp: true,
    phone_otp: false,
    oauth: true,
    passkey: true,
    anonymous: false,
  },
  session: { max_sessions: null },
  password_policy: {
    min_length: 8,
    require_uppercase: true,
    require_lowercase: true,
    require_numbers: true,
    require_special: true,
    history: 5,
  },
  mfa: { policy: "optional", methods: ["totp", "sms", "email"] },
  hide_account_existence: false,
  require_verified_email: false,
  organization_creation: "none",
  sender: null,
  templates: {},
  token_claims: [],
  captcha: null,
  test_identifiers: [],
  sms_origin: null,
  android_sms_hash: null,
}
