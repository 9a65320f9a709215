import type { Command } from "commander"
import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { deleted_fields, user_fields } from "../lib/fields"
import { LIMIT, PASSWORD_STDIN, YOUR_NAME } from "../lib/flags"
import { given } from "../lib/input"
import { limitOf, listUpTo } from "../lib/paging"
import { password as askPassword, confirm, twoPasswords } from "../lib/prompts"
import type { Deleted, SessionRecord, User } from "../lib/records"
import { examples, run } from "../lib/run"
import { fields, idColumn } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age } from "../lib/time"
import { forgetSession } from "./login"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** The person that is signed in: their name, password, second factor and sessions. */
export function define(program: Command): void {
  const me = program
    .command("me")
    .description("manage your name, password, second factor and sessions")
    .addHelpText("after", examples("me get", "me mfa enroll"))

  me.command("get")
    .description("show your user")
    .addHelpText("after", examples("me get"))
    .action(run(get))

  me.command("update")
    .description("change your name, language and time zone")
    .option(...YOUR_NAME)
    .option("--locale <language>", "language as a BCP 47 tag, for example en or de-AT")
    .option("--timezone <zone>", "time zone, for example Europe/Vienna")
    .addHelpText("after", examples("me update --name Ann --timezone Europe/Vienna"))
    .action(run(update))

  me.command("password")
    .description("change your password; your other sessions end")
    .option("--password-stdin", "read the old and the new password from stdin, one per line")
    .addHelpText("after", examples("me password"))
    .action(run(password))

  me.command("delete")
    .description("delete your user; the accounts keep their data")
    .option(...PASSWORD_STDIN)
    .addHelpText("after", examples("me delete"))
    .action(run(remove))

  me.command("approve <code>")
    .description("approve the sign-in of the program that shows this code")
    .option("--deny", "refuse the sign-in")
    .addHelpText("after", examples("me approve BCDF-GHJK"))
    .action(run(approve))

  defineMfa(me)
  defineSessions(me)
}

function defineMfa(me: Command) {
  const mfa = me
    .command("mfa")
    .description("manage your second factor")
    .addHelpText("after", examples("me mfa enroll"))
  mfa
    .command("enroll")
    .description("start a second factor; its secret and backup codes are shown once")
    .addHelpText("after", examples("me mfa enroll"))
    .action(run(enroll))
  for (const [name, about] of [
    ["verify", "turn the second factor on, with a code of your app"],
    ["disable", "turn the second factor off, with a code or a backup code"],
  ] as const) {
    mfa
      .command(`${name} <code>`)
      .description(about)
      .addHelpText("after", examples(`me mfa ${name} 123456`))
      .action(run({ verify, disable }[name]))
  }
}

function defineSessions(me: Command) {
  const sessions = me
    .command("sessions")
    .description("manage the sessions in which you are signed in")
    .addHelpText("after", examples("me sessions list"))
  sessions
    .command("list")
    .description("list your sessions, newest first")
    .option(...LIMIT)
    .addHelpText("after", examples("me sessions list"))
    .action(run(list))
  sessions
    .command("revoke <id>")
    .description("end one session")
    .addHelpText("after", examples(`me sessions revoke ${ID}`))
    .action(run(revoke))
}

const ME = "/v1/users/me"

const shown = (user: User, paint: Paint) => fields(Object.entries(user), paint)

export const get: Action<object> = async (context) => {
  const { data } = await context.client().get<User>(ME)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

interface UpdateOptions {
  name?: string
  locale?: string
  timezone?: string
}

export const update: Action<UpdateOptions> = async (context, { name, locale, timezone }) => {
  const changes = given({ name, locale, timezone })
  if (Object.keys(changes).length === 0)
    throw usage("nothing to change: give at least one flag", "see --help")
  context.output.promises(user_fields)
  const { data } = await context.client().patch<User>(ME, changes)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

interface PasswordOptions {
  passwordStdin?: boolean
}

export const password: Action<PasswordOptions> = async (context, options) => {
  context.output.promises(["success"])
  const [current_password, new_password] = await twoPasswords(context, options)
  const body = { current_password, new_password }
  const { data } = await context.client().post<{ success: boolean }>(`${ME}/password`, body)
  const text = `${context.paint.green("✓")} the password is changed; your other sessions have ended`
  await context.output.record(data, () => text)
  return undefined
}

/** The server wants the password; whoever types it means it, but a script has to say so too. */
export const remove: Action<PasswordOptions> = async (context, { passwordStdin }) => {
  context.output.promises(deleted_fields)
  const client = context.client()
  const { email } = (await client.get<User>(ME)).data
  const what = `The user ${email} and all their roles will be deleted. This cannot be undone.`
  await confirm(context, what, email)
  const body = { password: await askPassword(context, { passwordStdin }) }
  const { data } = await client.remove<Deleted>(ME, {}, body)
  forgetSession(context.connection())
  await context.output.record(data, () => `${context.paint.green("✓")} deleted ${email}`)
  return undefined
}

/** For `belfry login --device` elsewhere: whoever says yes lets that program act as himself. */
export const approve: Action<{ deny?: boolean }> = async (context, { deny = false }, code = "") => {
  context.output.promises(["approved"])
  const body = { user_code: code, approve: !deny }
  const path = "/v1/session/device/approve"
  const { data } = await context.client().post<{ approved: boolean }>(path, body)
  const text = data.approved
    ? "the program is signed in as you"
    : "the sign-in of the program is refused"
  await context.output.record(data, () => `${context.paint.green("✓")} ${text}`)
  return undefined
}

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

const SESSIONS = "/v1/users/me/sessions"

export const list: Action<{ limit?: string }> = async (context, { limit }) => {
  const found = await listUpTo<SessionRecord>(context.client(), SESSIONS, {}, limitOf(limit))
  await context.output.list(found.rows, [
    { title: "", cell: ({ current }) => (current ? "*" : "") },
    idColumn("session"),
    { title: "ADDRESS", cell: ({ ip }) => ip ?? "" },
    {
      title: "PROGRAM",
      cell: ({ client_name, user_agent }) => client_name ?? user_agent ?? "",
      flexible: true,
    },
    { title: "USED", cell: ({ last_used_at }) => age(last_used_at) },
    { title: "SINCE", cell: ({ created_at }) => age(created_at) },
  ])
  if (found.more) await context.output.next(`belfry me sessions list --limit ${2 * limitOf(limit)}`)
  return undefined
}

export const revoke: Action<object> = async (context, _, id = "") => {
  context.output.promises(deleted_fields)
  await confirm(context, `Session ${id} will be signed out.`, "revoke")
  const { data } = await context.client().remove<Deleted>(`${SESSIONS}/${encodeURIComponent(id)}`)
  await context.output.record(data, () => `${context.paint.green("✓")} the session has ended`)
  return undefined
}
