import type { Command } from "commander"
import { examples, lazily } from "../action"
import {
  ACCOUNT_NAME,
  NEW_PASSWORD_STDIN,
  PASSWORD_STDIN,
  PROJECT_NAME,
  YOUR_EMAIL,
  YOUR_NAME,
} from "../shared-flags"

/** Commands that create a user on a server, and those that set a forgotten password. */
export function define(program: Command): void {
  newcomer(program, "setup [url]")
    .description("become the first owner of a server, with its setup token")
    .option("--setup-token <token>", "token that the first start of the server printed")
    .option(...ACCOUNT_NAME)
    .option(...PROJECT_NAME)
    .addHelpText(
      "after",
      examples("setup https://mail.example.test --email ann@example.test --account-name Acme"),
    )
    .action(lazily(async () => (await import("../entrance")).setup))

  newcomer(program, "signup [url]")
    .description("create your user, by invitation or by open sign-up")
    .option("--invitation <token>", "token of an invitation to this address")
    .addHelpText("after", examples("signup https://mail.example.test --email kim@example.test"))
    .action(lazily(async () => (await import("../entrance")).signUp))

  const password = program
    .command("password")
    .description("replace a password that you forgot")
    .addHelpText("after", examples("password forgot ann@example.test"))
  password
    .command("forgot <email>")
    .description("request a mail with a link for a new password")
    .addHelpText("after", examples("password forgot ann@example.test"))
    .action(lazily(async () => (await import("../entrance")).forgot))
  password
    .command("reset <token>")
    .description("set a new password with the token of that mail; all sessions end")
    .option(...NEW_PASSWORD_STDIN)
    .addHelpText("after", examples("password reset belfry_reset_…"))
    .action(lazily(async () => (await import("../entrance")).reset))
}

const newcomer = (program: Command, name: string): Command =>
  program
    .command(name)
    .option(...YOUR_EMAIL)
    .option(...YOUR_NAME)
    .option(...PASSWORD_STDIN)
