import type { Command } from "commander"
import { examples, lazily } from "../action"
import { PASSWORD_STDIN, YOUR_EMAIL } from "../shared-flags"

/** Signing in as a person, which everything about accounts needs. */
export function define(program: Command): void {
  program
    .command("login [url]")
    .description("sign in as a person; a profile stores the session")
    .option(...YOUR_EMAIL)
    .option(...PASSWORD_STDIN)
    .option("--code <code>", "code of your second factor")
    .option("--device", "approve the sign-in on another device")
    .addHelpText(
      "after",
      examples("login https://mail.example.test", "login http://127.0.0.1:8080 --device"),
    )
    .action(lazily(async () => (await import("../login")).login))

  program
    .command("logout")
    .description("sign out")
    .addHelpText("after", examples("logout"))
    .action(lazily(async () => (await import("../login")).logout))

  program
    .command("whoami")
    .description("show the person or key that commands use")
    .addHelpText("after", examples("whoami", "whoami --json=user.email,account_id"))
    .action(lazily(async () => (await import("../login")).whoami))
}
