import type { Command } from "commander"
import { examples, lazily } from "../action"

/** Servers by name, in a file that only its owner can read. */
export function define(program: Command): void {
  const profiles = program
    .command("profiles")
    .description("manage the stored servers and keys")
    .addHelpText("after", examples("profiles list"))

  profiles
    .command("list")
    .description("list the stored profiles")
    .addHelpText("after", examples("profiles list"))
    .action(lazily(async () => (await import("../profiles")).list))

  profiles
    .command("use <name>")
    .description("choose the profile that later commands use")
    .addHelpText("after", examples("profiles use local"))
    .action(lazily(async () => (await import("../profiles")).use))

  profiles
    .command("set <name>")
    .description("store --url and --api-key (or BELFRY_URL and BELFRY_API_KEY) in a profile")
    .addHelpText("after", examples("profiles set prod --url https://mail.example.test"))
    .action(lazily(async () => (await import("../profiles")).set))
}
