import type { Command } from "commander"
import { fieldsOf } from "../lib/client"
import type { Action } from "../lib/context"
import { PASSWORD_STDIN } from "../lib/flags"
import { password as askPassword, confirm } from "../lib/prompts"
import { groupOf } from "../lib/resource"
import { examples, run } from "../lib/run"
import { forgetSession } from "./login"

/** The person that is signed in: password and second factor. */
export function define(program: Command): void {
  const me = groupOf(program, "me")
  me.command("delete")
    .description("delete your user; the accounts keep their data")
    .option(...PASSWORD_STDIN)
    .addHelpText("after", examples("me delete"))
    .action(run(remove))

  groupOf(me, "mfa")
    .command("enroll")
    .description("start a second factor; its secret and backup codes are shown once")
    .addHelpText("after", examples("me mfa enroll"))
    .action(run(enroll))
}

/** The server asks for the password. A script needs --yes as well. */
const remove: Action<{ passwordStdin?: boolean }> = async (context, { passwordStdin }) => {
  context.output.promises(fieldsOf("DELETE /v1/users/me"))
  const client = context.client()
  const { email } = (await client.call("GET /v1/users/me")).data
  const what = `The user ${email} and all their roles will be deleted. This cannot be undone.`
  await confirm(context, what, email)
  const body = { password: await askPassword(context, { passwordStdin }) }
  const { data } = await client.call("DELETE /v1/users/me", { body })
  forgetSession(context.connection())
  await context.output.record(data, () => `${context.paint.green("✓")} deleted ${email}`)
}

/** On a terminal the code is drawn, so that a phone can read it from the screen. */
const enroll: Action<object> = async (context) => {
  const name = "POST /v1/users/me/mfa/enroll"
  context.output.promises(fieldsOf(name))
  const { data } = await context.call(name)
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
}
