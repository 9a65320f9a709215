import type { Command } from "commander"
import { examples, lazily } from "../action"
import { LIMIT, PASSWORD_STDIN, YOUR_NAME } from "../shared-flags"

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
    .action(lazily(async () => (await import("../me")).get))

  me.command("update")
    .description("change your name, language and time zone")
    .option(...YOUR_NAME)
    .option("--locale <language>", "language as a BCP 47 tag, for example en or de-AT")
    .option("--timezone <zone>", "time zone, for example Europe/Vienna")
    .addHelpText("after", examples("me update --name Ann --timezone Europe/Vienna"))
    .action(lazily(async () => (await import("../me")).update))

  me.command("password")
    .description("change your password; your other sessions end")
    .option("--password-stdin", "read the old and the new password from stdin, one per line")
    .addHelpText("after", examples("me password"))
    .action(lazily(async () => (await import("../me")).password))

  me.command("delete")
    .description("delete your user; the accounts keep their data")
    .option(...PASSWORD_STDIN)
    .addHelpText("after", examples("me delete"))
    .action(lazily(async () => (await import("../me")).remove))

  me.command("approve <code>")
    .description("approve the sign-in of the program that shows this code")
    .option("--deny", "refuse the sign-in")
    .addHelpText("after", examples("me approve BCDF-GHJK"))
    .action(lazily(async () => (await import("../me")).approve))

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
    .action(lazily(async () => (await import("../me-mfa")).enroll))
  for (const [name, about] of [
    ["verify", "turn the second factor on, with a code of your app"],
    ["disable", "turn the second factor off, with a code or a backup code"],
  ] as const) {
    mfa
      .command(`${name} <code>`)
      .description(about)
      .addHelpText("after", examples(`me mfa ${name} 123456`))
      .action(lazily(async () => (await import("../me-mfa"))[name]))
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
    .action(lazily(async () => (await import("../me-sessions")).list))
  sessions
    .command("revoke <id>")
    .description("end one session")
    .addHelpText("after", examples(`me sessions revoke ${ID}`))
    .action(lazily(async () => (await import("../me-sessions")).revoke))
}
