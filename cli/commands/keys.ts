import type { Command } from "commander"
import { examples, lazily, several } from "../action"
import { scopes } from "../scopes"

/** API keys of the project. */
export function define(program: Command): void {
  const keys = program
    .command("keys")
    .description("API keys of the project")
    .addHelpText("after", examples("keys list"))

  keys
    .command("create")
    .description("make a key; its text is shown this once, with --quiet nothing else")
    .requiredOption("--name <name>", "what it is for")
    .option("--scope <scope>", "what it may do, for example email:send; may be repeated", several)
    .option("--expires <when>", "a time, or a span from now: 90d")
    .option("--ip <address>", "only from this address or network; may be repeated", several)
    .option("--idempotency-key <key>", "the same key twice makes one API key")
    .addHelpText(
      "after",
      `\nScopes: ${scopes.join(" ")}\n` +
        examples("keys create --name ci --scope email:send --scope email:read --expires 90d"),
    )
    .action(lazily(async () => (await import("../keys")).create))

  keys
    .command("list")
    .description("the keys, newest first")
    .option("--status <status>", "active, revoked or expired")
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("keys list --status active"))
    .action(lazily(async () => (await import("../keys")).list))

  keys
    .command("get <id>")
    .description("one key; its text cannot be read again")
    .addHelpText("after", examples("keys get 0199a1c2-0000-7000-8000-000000000001"))
    .action(lazily(async () => (await import("../keys")).get))

  keys
    .command("revoke <id>")
    .description("end a key, from the next request on")
    .addHelpText("after", examples("keys revoke 0199a1c2-0000-7000-8000-000000000001 --yes"))
    .action(lazily(async () => (await import("../keys")).revoke))
}
