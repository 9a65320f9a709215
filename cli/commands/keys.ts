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

  defineCare(keys)
}

const ID = "0199a1c2-0000-7000-8000-000000000001"

function defineCare(keys: Command) {
  keys
    .command("update <id>")
    .description("rename a key, narrow its scopes, or change when it ends")
    .option("--name <name>", "another name")
    .option("--scope <scope>", "keep this scope only; may be repeated", several)
    .option("--expires <when>", "a time, a span from now (90d), or never")
    .addHelpText("after", examples(`keys update ${ID} --scope email:send --expires 90d`))
    .action(lazily(async () => (await import("../key-care")).update))

  keys
    .command("rotate <id>")
    .description("make a key in the place of one, which works on for some hours")
    .option("--overlap <hours>", "how long both work: 0 to 72 (default: 24)")
    .addHelpText("after", examples(`keys rotate ${ID} --overlap 2`))
    .action(lazily(async () => (await import("../key-care")).rotate))

  keys
    .command("allowlist <id> [address...]")
    .description("say from which addresses a key works; without any, tell them")
    .option("--clear", "let it work from every address")
    .addHelpText("after", examples(`keys allowlist ${ID} 192.0.2.7 2001:db8::/32`))
    .action(lazily(async () => (await import("../key-care")).allowlist))

  keys
    .command("doctor")
    .description("find keys that are unused, may do everything, or never expire; exit 8 if any")
    .addHelpText("after", examples("keys doctor"))
    .action(lazily(async () => (await import("../key-care")).doctor))
}
