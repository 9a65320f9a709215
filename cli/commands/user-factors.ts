import type { Action } from "../lib/context"
import { asks, own, type Resource, row } from "../lib/resource"
import { identityColumns } from "../lib/user-text"

const identities: Action<object> = async (context, _, user_id = "") => {
  const { data } = await context.call("GET /v1/auth/users/{user_id}", { params: { user_id } })
  await context.output.list(data.identities, identityColumns)
}

/** What users sign in with, beside a password. */
export const identityRows = [
  own("identities <id>", identities, {
    about: "list the accounts elsewhere that a user signs in with",
  }),
]

export const factorResource: Resource = {
  noun: "users mfa",
  about: "show, add and reset the second factors of a user",
  rows: [
    row("get <id>", "GET /v1/auth/users/{user_id}", {
      about: "show the second factors of a user",
      shown: ({ mfa_methods }) => mfa_methods.join("\n") || "none",
    }),
    row("enroll <id>", "POST /v1/auth/mfa/enroll", {
      about: "begin with a second factor of a user; this needs an API key",
      example: ["", "--method sms --phone-number +4915112345678"],
      flags: {
        method: "factor: totp, sms or email (default: totp)",
        phone_number: "phone number for sms (default: that of the user)",
      },
      values: () => ({ qr_code: null }),
      next: (_, [id]) => `users mfa verify ${id} CODE`,
    }),
    row("verify <id> <code>", "POST /v1/auth/mfa/verify-enrollment", {
      about: "turn a second factor on with its first code; this needs an API key",
      flags: { method: "factor: totp, sms or email (default: the newest)" },
      done: ({ method }) => `${method} is on`,
    }),
    row("reset <id>", "DELETE /v1/auth/users/{user_id}/mfa", {
      about: "remove all second factors of a user; their sessions end",
      example: "--yes",
      confirm: asks((id) => `The user ${id} will lose their factors and passkeys.`, "reset"),
      done: () => "the user has no second factor any more",
    }),
  ],
}
