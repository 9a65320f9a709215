import type { Command } from "commander"
import { examples, lazily } from "../action"

/** Servers by name, in a file that only its owner can read. */
export function define(program: Command): void {
  const profiles = program
    .command("profiles")
    .description("stored servers and keys, by name")
    .addHelpText("after", examples("profiles list"))

  profiles
    .command("list")
    .description("the stored profiles")
    .addHelpText("after", examples("profiles list"))
    .action(lazily(async () => (await import("../profiles")).list))

  profiles
    .command("use <name>")
    .description("take this profile where none is named")
    .addHelpText("after", examples("profiles use local"))
    .action(lazily(async () => (await import("../profiles")).use))

  profiles
    .command("set <name>")
    .description("store --url and --api-key (or BELFRY_URL and BELFRY_API_KEY) under a name")
    .addHelpText("after", examples("profiles set prod --url https://mail.example.test"))
    .action(lazily(async () => (await import("../profiles")).set))
}
