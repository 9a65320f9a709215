import { type Static, Type as t } from "@sinclair/typebox"
import { count, flag, maybe, text, time, word } from "../../lib/record-fields"
import { AuthResult, OtpSent } from "../schemas"
import { MFA_METHODS } from "../tables"

const backup_codes = t.Array(text("k7m2p-x9q4r"))

export const OwnFactors = t.Object(
  {
    enabled: flag(true),
    methods: t.Array(
      t.Object({
        type: word(MFA_METHODS),
        verified_at: time(),
        hint: maybe(text("+49•••78", "The end of the number or address, or the passkey's name.")),
      }),
    ),
    backup_codes_left: count(10),
  },
  { title: "OwnFactors" },
)

const TotpEnrolment = t.Object({
  method: t.Literal("totp"),
  secret: text("JBSWY3DPEHPK3PXP", "In base32, for people that cannot scan the picture."),
  otpauth_url: text("otpauth://totp/Shop:ann%40example.com?secret=JBSWY3DPEHPK3PXP&issuer=Shop"),
  qr_code: text("data:image/svg+xml;base64,PHN2ZyB4bWxucz0…"),
})

const SentEnrolment = t.Object({
  method: word(["sms", "email"]),
  sent: t.Literal(true),
  destination: text("a•••@example.com"),
  expires_in: count(600),
})

/** What an enrolment begins with. */
export type BegunEnrolment = Static<typeof TotpEnrolment> | Static<typeof SentEnrolment>

/** What it answers. The backup codes are shown only here. */
export const Enrolment = t.Union([
  t.Object({ ...TotpEnrolment.properties, backup_codes }),
  t.Object({ ...SentEnrolment.properties, backup_codes }),
])

/** What `meta` has beside the usual. */
export const NextStep = t.Object({
  message: text("Scan the picture with an authenticator app. …", "What to do next."),
})

export const FactorOn = t.Object({
  enabled: t.Literal(true),
  method: word(["totp", "sms", "email"]),
  mfa_enabled_at: time(),
})

/** A sign-in by a backup code. */
export const Recovered = t.Object(
  { ...AuthResult.properties, backup_codes_left: count(9) },
  { title: "Recovered" },
)

const SteppedUp = t.Object({
  access_token: text("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIwMTk5…", "With a fresh `auth_time`."),
  expires_in: count(3600),
})

/** A step-up answers a token; without a code it sends one. */
export const StepUpAnswer = t.Union([SteppedUp, OtpSent])

export const FactorsLeft = t.Object({
  enabled: flag(false),
  methods: t.Array(word(MFA_METHODS)),
})

export const BackupCodes = t.Object({ backup_codes })
