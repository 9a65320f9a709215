import { Type as t } from "@sinclair/typebox"
import { mailboxText } from "../http/field-schemas"
import { MOST_PASSWORD_CHARACTERS } from "../sign-in/passwords"

const LONGEST_EMAIL = 1000
const LONGEST_TOKEN = 200
const LONGEST_CODE = 20
const LONGEST_URL = 2048
const LONGEST_CAPTCHA = 8192

export const passwordField = () => t.String({ maxLength: MOST_PASSWORD_CHARACTERS })
export const tokenField = () => t.String({ maxLength: LONGEST_TOKEN })
export const codeField = () => t.String({ maxLength: LONGEST_CODE })

/** An address that somebody says is theirs: one that cannot be is nobody's. */
export const claimedEmail = () => t.String({ maxLength: LONGEST_EMAIL })

/** An address that somebody wants to have. */
export const wantedEmail = () => mailboxText({ maxLength: LONGEST_EMAIL })

export const redirectField = () =>
  t.String({ maxLength: LONGEST_URL, description: "One of the environment's `redirect_urls`." })

export const captchaField = () =>
  t.String({
    maxLength: LONGEST_CAPTCHA,
    description: "What the captcha of the page gave. Needed where the environment has one.",
  })
