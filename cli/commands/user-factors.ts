import type { Action } from "../lib/context"
import { password } from "../lib/prompts"
import { asks, own, type Resource, row } from "../lib/resource"
import { ago, wide } from "../lib/table"
import { identityColumns } from "../lib/user-text"

const identities: Action<object> = async (context, _, user_id = "") => {
  const { data } = await context.call("GET /v1/auth/users/{user_id}", { params: { user_id } })
  await context.output.list(data.identities, identityColumns)
}

const passkeys: Action<object> = async (context) => {
  const authorization = `Bearer ${await password(context, { passwordStdin: true })}`
  const path = "GET /v1/auth/passkeys"
  const { data } = await context.anonymous().call(path, { headers: { authorization } })
  await context.output.list(data, {
    ID: "id",
    NAME: wide(({ name }) => name),
    "BACKED UP": ({ backed_up }) => (backed_up ? "yes" : "no"),
    USED: ago(({ last_used_at }) => last_used_at, "never"),
    AGE: ago(({ created_at }) => created_at),
  })
}

/** What users sign in with, beside a password. */
export const identityRows = [
  own("identities <id>", identities, {
    about: "list the accounts elsewhere that a user signs in with",
  }),
  own("passkeys", passkeys, {
    about: "list the passkeys of a user, with an access token of theirs",
    example: "--token-stdin < token.txt",
    note: "`users impersonate ID --reason TEXT --quiet` prints such a token.",
    options: [["--token-stdin", "read the access token from stdin", "required"]],
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
