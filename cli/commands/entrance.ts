import type { Command } from "commander"
import { examples, lazily } from "../action"

/** How one becomes somebody on a server, and how one gets back in. */
export function define(program: Command): void {
  newcomer(program, "setup [url]")
    .description("become the first owner of a server, with its setup token")
    .option("--setup-token <token>", "what the first start printed")
    .option("--account-name <name>", "what your account is called (default: Main)")
    .option("--project-name <name>", "what its first project is called (default: Default)")
    .addHelpText(
      "after",
      examples("setup https://mail.example.test --email ann@example.test --account-name Acme"),
    )
    .action(lazily(async () => (await import("../entrance")).setup))

  newcomer(program, "signup [url]")
    .description("become a user, with an invitation or where sign-up is open")
    .option("--invitation <token>", "the token of an invitation to this address")
    .addHelpText("after", examples("signup https://mail.example.test --email kim@example.test"))
    .action(lazily(async () => (await import("../entrance")).signUp))

  const password = program
    .command("password")
    .description("set a new password when you forgot yours")
    .addHelpText("after", examples("password forgot ann@example.test"))
  password
    .command("forgot <email>")
    .description("ask for a mail with which to set a new password")
    .addHelpText("after", examples("password forgot ann@example.test"))
    .action(lazily(async () => (await import("../entrance")).forgot))
  password
    .command("reset <token>")
    .description("set a new password with the token of that mail; every session ends")
    .option("--password-stdin", "read the new password from stdin")
    .addHelpText("after", examples("password reset belfry_reset_…"))
    .action(lazily(async () => (await import("../entrance")).reset))
}

const newcomer = (program: Command, name: string): Command =>
  program
    .command(name)
    .option("--email <address>", "who you are")
    .option("--name <name>", "what you are called")
    .option("--password-stdin", "read the password from stdin")
