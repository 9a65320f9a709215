import type { Command } from "commander"
import { examples, lazily, several } from "../action"
import { scopes } from "../scopes"
import { IDEMPOTENCY_KEY, LIMIT } from "../shared-flags"

/** API keys of the project. */
export function define(program: Command): void {
  const keys = program
    .command("keys")
    .description("manage the API keys of the project")
    .addHelpText("after", examples("keys list"))

  keys
    .command("create")
    .description("create a key and print it once; --quiet prints only the key")
    .requiredOption("--name <name>", "name of the key")
    .option("--scope <scope>", "allowed scope, for example email:send; may be repeated", several)
    .option("--expires <when>", "expiry: a time, or a span from now (90d)")
    .option("--ip <address>", "allow only this IP address or network; may be repeated", several)
    .option(...IDEMPOTENCY_KEY)
    .addHelpText(
      "after",
      `\nScopes: ${scopes.join(" ")}\n` +
        examples("keys create --name ci --scope email:send --scope email:read --expires 90d"),
    )
    .action(lazily(async () => (await import("../keys")).create))

  keys
    .command("list")
    .description("list the keys, newest first")
    .option("--status <status>", "show only this status: active, revoked or expired")
    .option(...LIMIT)
    .addHelpText("after", examples("keys list --status active"))
    .action(lazily(async () => (await import("../keys")).list))

  keys
    .command("get <id>")
    .description("show one key, without its secret text")
    .addHelpText("after", examples("keys get 0199a1c2-0000-7000-8000-000000000001"))
    .action(lazily(async () => (await import("../keys")).get))

  keys
    .command("revoke <id>")
    .description("revoke a key; the next request with it is refused")
    .addHelpText("after", examples("keys revoke 0199a1c2-0000-7000-8000-000000000001 --yes"))
    .action(lazily(async () => (await import("../keys")).revoke))

  defineCare(keys)
}

const ID = "0199a1c2-0000-7000-8000-000000000001"

function defineCare(keys: Command) {
  keys
    .command("update <id>")
    .description("change the name or expiry of a key, or reduce its scopes")
    .option("--name <name>", "new name")
    .option("--scope <scope>", "scope to keep, the others are removed; may be repeated", several)
    .option("--expires <when>", "expiry: a time, a span from now (90d), or never")
    .addHelpText("after", examples(`keys update ${ID} --scope email:send --expires 90d`))
    .action(lazily(async () => (await import("../key-care")).update))

  keys
    .command("rotate <id>")
    .description("create a key that replaces another one after some hours")
    .option("--overlap <hours>", "hours in which both keys work: 0 to 72 (default: 24)")
    .addHelpText("after", examples(`keys rotate ${ID} --overlap 2`))
    .action(lazily(async () => (await import("../key-care")).rotate))

  keys
    .command("allowlist <id> [address...]")
    .description("set the IP addresses that may use a key; without any, show them")
    .option("--clear", "allow every address again")
    .addHelpText("after", examples(`keys allowlist ${ID} 192.0.2.7 2001:db8::/32`))
    .action(lazily(async () => (await import("../key-care")).allowlist))

  keys
    .command("doctor")
    .description("find keys that are unused, may do everything or never expire; exit 8 if any")
    .addHelpText("after", examples("keys doctor"))
    .action(lazily(async () => (await import("../key-care")).doctor))
}
