import type { Command } from "commander"
import { examples, lazily } from "../action"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Whoever is signed in, and what is his alone: name, password, second factor, sessions. */
export function define(program: Command): void {
  const me = program
    .command("me")
    .description("your name, password, second factor and sessions")
    .addHelpText("after", examples("me get", "me mfa enroll"))

  me.command("get")
    .description("who you are")
    .addHelpText("after", examples("me get"))
    .action(lazily(async () => (await import("../me")).get))

  me.command("update")
    .description("change your name, language and time zone")
    .option("--name <name>", "what you are called")
    .option("--locale <language>", "as in BCP 47: en, de-AT")
    .option("--timezone <zone>", "as in Europe/Vienna")
    .addHelpText("after", examples("me update --name Ann --timezone Europe/Vienna"))
    .action(lazily(async () => (await import("../me")).update))

  me.command("password")
    .description("change your password; your other sessions end")
    .option("--password-stdin", "read the present and the new password from stdin, a line each")
    .addHelpText("after", examples("me password"))
    .action(lazily(async () => (await import("../me")).password))

  me.command("delete")
    .description("delete yourself; what your accounts hold stays theirs")
    .option("--password-stdin", "read the password from stdin")
    .addHelpText("after", examples("me delete"))
    .action(lazily(async () => (await import("../me")).remove))

  me.command("approve <code>")
    .description("let a program in that shows this code, as you")
    .option("--deny", "turn it away instead")
    .addHelpText("after", examples("me approve BCDF-GHJK"))
    .action(lazily(async () => (await import("../me")).approve))

  defineMfa(me)
  defineSessions(me)
}

function defineMfa(me: Command) {
  const mfa = me
    .command("mfa")
    .description("your second factor")
    .addHelpText("after", examples("me mfa enroll"))
  mfa
    .command("enroll")
    .description("begin a second factor; its secret and recovery codes are shown once")
    .addHelpText("after", examples("me mfa enroll"))
    .action(lazily(async () => (await import("../me-mfa")).enroll))
  for (const [name, about] of [
    ["verify", "turn it on with a first code of your app"],
    ["disable", "turn it off with a code of it, or a recovery code"],
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
    .description("where you are signed in")
    .addHelpText("after", examples("me sessions list"))
  sessions
    .command("list")
    .description("where you are signed in, newest first")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("me sessions list"))
    .action(lazily(async () => (await import("../me-sessions")).list))
  sessions
    .command("revoke <id>")
    .description("sign out there")
    .addHelpText("after", examples(`me sessions revoke ${ID}`))
    .action(lazily(async () => (await import("../me-sessions")).revoke))
}
