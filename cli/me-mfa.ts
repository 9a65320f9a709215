import type { Action, Context } from "./context"

const MFA = "/v1/users/me/mfa"

type Enrolment = {
  secret: string
  otpauth_url: string
  qr_code: string
  backup_codes: string[]
}

/** On a terminal the code is drawn, so that a phone can read it from the screen. */
export const enroll: Action<object> = async (context) => {
  context.output.promises(["secret", "otpauth_url", "qr_code", "backup_codes"])
  const { data } = await context.client().post<Enrolment>(`${MFA}/enroll`)
  const { renderUnicodeCompact } = await import("uqr")
  await context.output.record(data, () =>
    [
      renderUnicodeCompact(data.otpauth_url),
      `Scan this code with your app, or enter the secret ${data.secret}.`,
      "If you lose your app, each backup code works once. The codes cannot be shown again:",
      ...data.backup_codes.map((code) => `  ${code}`),
    ].join("\n"),
  )
  await context.output.next("belfry me mfa verify <code>")
  return undefined
}

const answer =
  (path: string, done: string): Action<object> =>
  async (context: Context, _, code = "") => {
    context.output.promises(["enabled"])
    const { data } = await context.client().post<{ enabled: boolean }>(`${MFA}/${path}`, { code })
    await context.output.record(data, () => `${context.paint.green("✓")} ${done}`)
    return undefined
  }

export const verify = answer("verify", "every sign-in now needs a code")
export const disable = answer("disable", "a sign-in now needs only the password")
