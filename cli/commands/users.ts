import type { Components } from "../../src/client/components"
import { metadata } from "../lib/body-flags"
import type { Context } from "../lib/context"
import { flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { IMPORT_OPTIONS } from "../lib/file-import"
import { NEW_PASSWORD_STDIN, PASSWORD_STDIN } from "../lib/flags"
import { pairs } from "../lib/input"
import { password } from "../lib/prompts"
import { asks, deletes, own, type PlainFlags, type Resource, row } from "../lib/resource"
import { later } from "../lib/run"
import { ago, type Columns, coloured, idColumn, wide } from "../lib/table"
import { identityRows } from "./user-factors"

type User = Components["User"]

const columns: Columns<User> = {
  ID: idColumn("user"),
  EMAIL: wide(({ email }) => email, "last"),
  PHONE: { cell: ({ phone_number }) => phone_number ?? "", spare: 1 },
  NAME: wide(({ name }) => name, "first"),
  STATUS: coloured(({ status }) => status, { active: "green", invited: "yellow" }, "red"),
  "LAST LOGIN": ago(({ last_login_at }) => last_login_at, "never"),
  AGE: ago(({ created_at }) => created_at),
}

const APPLICATION = "id of the application (default: the only one of the project)"
const ENVIRONMENT = "environment: live or test (default: live)"

/** For which users: of an application, in an environment. */
export const target = { application_id: APPLICATION, environment: ENVIRONMENT }
export const targetAliases = { application_id: "application" }

const profile: PlainFlags = {
  metadata,
  app_metadata: flag(
    [
      "--app-metadata <pair>",
      "data that the user cannot change, k=v or a JSON object; may be repeated",
      "several",
    ],
    pairs,
  ),
  email: "email address",
  phone_number: "phone number, such as +4915112345678",
  name: "name of the person",
  avatar_url: "address of a picture",
  locale: "language as a BCP 47 tag, for example en or de-AT",
  email_verified: "whether the address is verified",
  phone_verified: "whether the number is verified",
}

/** From stdin alone: a command line is seen by others. */
const fromStdin = async (
  { passwordStdin }: PlainOptions,
  _: readonly string[],
  context: Context,
) => (passwordStdin === true ? { password: await password(context, { passwordStdin: true }) } : {})

const FORMAT: OptionWords = [
  "--format <format>",
  "csv, json or ndjson (default: by the file itself)",
]

const named = ({ email, phone_number, name, id }: User) => email ?? phone_number ?? name ?? id

const listRows = [
  row("list", "GET /v1/auth/users", {
    example: ["--q ann", "--status suspended --environment test"],
    flags: { ...target, organization_id: "show only members of this organization" },
    aliases: targetAliases,
    columns,
    next: ([first]) => first && `users get ${first.id}`,
  }),
  row("get <id>", "GET /v1/auth/users/{user_id}", { about: "show a user" }),
  row("create", "POST /v1/auth/users", {
    about: "add a user; exit 5 where the address or the number has one",
    example: [
      "--email ann@example.test --email-verified on",
      "--email ann@example.test --password-stdin < password.txt",
    ],
    flags: { ...target, ...profile, password: false },
    aliases: targetAliases,
    options: [PASSWORD_STDIN],
    input: fromStdin,
    done: (user) => `added ${named(user)}   ${user.id}`,
  }),
  row("invite <email>", "POST /v1/auth/users/invite", {
    about: "mail an invitation that works for seven days",
    word: "ann@example.test",
    example: "--redirect-url https://app.example.test/welcome",
    flags: {
      ...target,
      name: "name of the person",
      role: "role in the organization (default: member)",
      redirect_url: "where the page of the invitation leads; the environment must list it",
    },
    aliases: targetAliases,
    done: ({ email, id }) => `invited ${email}   ${id}`,
  }),
  own(
    "import <file>",
    later(async () => (await import("./users-import")).importUsers),
    {
      about: "add the users of a CSV or JSON file with their password hashes, 1,000 in one request",
      word: ["people.csv", "people.ndjson"],
      example: ["--hash bcrypt --map 'Encrypted=password_hash'", "--environment test"],
      note: "The first line of a CSV file names its columns. The same command continues an\nimport that was interrupted. An address that has a user already is refused.",
      options: [
        ["--application <id>", APPLICATION],
        ["--environment <environment>", ENVIRONMENT],
        ["--hash <hash>", "what every password_hash must be: bcrypt, argon2 or pbkdf2"],
        ["--map <column=field>", "field that a column fills; may be repeated", "several"],
        FORMAT,
        ...IMPORT_OPTIONS,
      ],
    },
  ),
]

const oneRows = [
  row("update <id>", "PATCH /v1/auth/users/{user_id}", {
    about: "change a user; none empties a field",
    example: ["--name Ann --app-metadata role=editor", "--email-verified on"],
    note: "--metadata and --app-metadata replace what is there.",
    flags: profile,
    done: (user) => `changed ${named(user)}`,
  }),
  row("rm <id>", "DELETE /v1/auth/users/{user_id}", {
    about: "delete a user, or revoke an invitation",
    ...deletes((id) => `The user ${id} will be deleted, and their sessions end.`),
  }),
  row("suspend <id>", "POST /v1/auth/users/{user_id}/suspend", {
    about: "end the sessions of a user and let them sign in no more",
    example: "--reason abuse --yes",
    flags: { reason: "why; only servers see it" },
    confirm: asks((id) => `The user ${id} will be signed out and cannot sign in.`, "suspend"),
    done: (user) => `suspended ${named(user)}`,
  }),
  row("activate <id>", "POST /v1/auth/users/{user_id}/activate", {
    about: "lift a suspension or a lockout, so that the user may sign in again",
    done: (user) => `${named(user)} can sign in`,
  }),
  row("password <id>", "POST /v1/auth/users/{user_id}/password", {
    about: "set the password of a user; their sessions end",
    example: "--password-stdin < password.txt",
    flags: { password: false, keep_sessions: "let the sessions of the user go on" },
    options: [NEW_PASSWORD_STDIN],
    input: async ({ passwordStdin }, _, context) => ({
      password: await password(context, { passwordStdin: passwordStdin === true, is_new: true }),
    }),
    done: () => "the password is set",
  }),
  row("impersonate <id>", "POST /v1/auth/users/{user_id}/impersonate", {
    about: "get a token that acts as a user; the audit log keeps the reason",
    example: ["--reason 'ticket 4711'", "--reason 'ticket 4711' --ttl-seconds 300 --quiet"],
    flags: { reason: "why you act as the user", ttl_seconds: "how long the token works" },
    done: ({ expires_in }) => `you may act as the user for ${expires_in} s`,
    shown: ({ access_token }) => `\n  ${access_token}\n`,
    brief: ({ access_token }) => access_token,
  }),
]

const sessionRows = [
  row("sessions <id>", "GET /v1/auth/users/{user_id}/sessions", {
    about: "list the sessions of a user, newest first",
    columns: {
      ID: "id",
      DEVICE: wide(({ device }) => device),
      ADDRESS: ({ ip }) => ip,
      USED: ago(({ last_used_at }) => last_used_at),
      SINCE: ago(({ created_at }) => created_at),
    },
  }),
  row("revoke-sessions <id>", "DELETE /v1/auth/users/{user_id}/sessions", {
    about: "sign a user out everywhere",
    confirm: asks((id) => `All sessions of ${id} will end.`, "revoke"),
    example: "--yes",
    done: ({ revoked }) => `${revoked} ${revoked === 1 ? "session has" : "sessions have"} ended`,
  }),
]

export const userResource: Resource = {
  noun: "users",
  about: "manage the users of your applications",
  example: [
    "users list --q ann",
    "users invite ann@example.test --redirect-url https://app.example.test",
  ],
  rows: [...listRows, ...oneRows, ...sessionRows, ...identityRows],
}
