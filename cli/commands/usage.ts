import type { Command } from "commander"
import { examples, lazily, SINCE, UNTIL } from "../action"

/** What was used, what was changed, and how the project is set. */
export function define(program: Command): void {
  const usage = program
    .command("usage")
    .description("what was used in a month, and what is left")
    .option("--period <YYYY-MM>", "another month than this one")
    .addHelpText("after", examples("usage", "usage --period 2026-11 --json"))
    .action(lazily(async () => (await import("../usage")).usage))

  usage
    .command("mine")
    .description("what all accounts that you own used together")
    .addHelpText("after", examples("usage mine"))
    .action(lazily(async () => (await import("../usage")).mine))

  usage
    .command("reconcile")
    .description("count a month afresh, and tell the drift")
    .option("--period <YYYY-MM>", "another month than this one")
    .addHelpText("after", examples("usage reconcile"))
    .action(lazily(async () => (await import("../usage")).reconcile))

  program
    .command("audit")
    .description("changes in the account and their authors, newest first")
    .option("--actor <id>", "only by this person or key")
    .option("--action <name>", "only this, for example member.removed")
    .option("--target <type>", "only of this, for example project")
    .option(...SINCE)
    .option(...UNTIL)
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("audit --since 24h", "audit --action api_key.created"))
    .action(lazily(async () => (await import("../usage")).audit))

  defineSettings(
    program
      .command("settings")
      .description("settings of the project")
      .addHelpText("after", examples("settings get")),
  )
}

function defineSettings(settings: Command) {
  settings
    .command("get [name]")
    .description("all settings, or one")
    .addHelpText("after", examples("settings get", "settings get sandbox"))
    .action(lazily(async () => (await import("../project-settings")).get))

  settings
    .command("set <name=value...>")
    .description("change settings; null is the default again")
    .addHelpText(
      "after",
      examples("settings set sandbox=true", "settings set default_from=me@example.test"),
    )
    .action(lazily(async () => (await import("../project-settings")).set))
}
