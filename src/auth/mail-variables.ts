import type { MailType } from "./environment-settings"

export interface MailVariable {
  key: string
  /** A template without it would be of no use. */
  required: boolean
}

const optional = (...keys: string[]): MailVariable[] =>
  keys.map((key) => ({ key, required: false }))
const required = (key: string): MailVariable => ({ key, required: true })

/** What every mail is given. */
const COMMON = optional(
  ...["app_name", "logo_url", "primary_color", "primary_text", "support_url"],
  ...["user_name", "email"],
)

const LINK = [required("link"), ...optional("expires_in")]
const CODE = [required("code"), ...optional("expires_in")]
const NOTICE = optional("device", "ip", "time")

/** What a mail of each type is given. An optional one without a value is empty text. */
export const MAIL_VARIABLES: Record<MailType, MailVariable[]> = {
  verify_email: [...LINK, ...optional("code"), ...COMMON],
  magic_link: [...LINK, ...COMMON],
  email_otp: [...CODE, ...COMMON],
  password_reset: [...LINK, ...COMMON],
  password_changed: [...NOTICE, ...COMMON],
  mfa_code: [...CODE, ...COMMON],
  invitation: [...LINK, ...optional("inviter"), ...COMMON],
  organization_invitation: [...LINK, ...optional("organization", "inviter"), ...COMMON],
  email_changed: [...NOTICE, ...optional("new_email"), ...COMMON],
  new_device: [...NOTICE, ...COMMON],
}

/** What no read of the API shows. */
export const SECRET_VARIABLES = ["code", "link"] as const

export const MASK = "••••"
