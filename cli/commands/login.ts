import type { Command } from "commander"
import { examples, lazily } from "../action"

/** Signing in as a person, which everything about accounts needs. */
export function define(program: Command): void {
  program
    .command("login [url]")
    .description("sign in as a person, and keep it in a profile")
    .option("--email <address>", "who you are")
    .option("--password-stdin", "read the password from stdin")
    .option("--code <code>", "code of the second factor")
    .option("--device", "approve the sign-in on another device instead")
    .addHelpText(
      "after",
      examples("login https://mail.example.test", "login http://127.0.0.1:8080 --device"),
    )
    .action(lazily(async () => (await import("../login")).login))

  program
    .command("logout")
    .description("end the sign-in")
    .addHelpText("after", examples("logout"))
    .action(lazily(async () => (await import("../login")).logout))

  program
    .command("whoami")
    .description("show which person or key the next command uses")
    .addHelpText("after", examples("whoami", "whoami --json=user.email,account_id"))
    .action(lazily(async () => (await import("../login")).whoami))
}
