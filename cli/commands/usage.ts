import type { Command } from "commander"
import { examples, lazily } from "../action"
import { LIMIT, PERIOD, SINCE, UNTIL } from "../shared-flags"

/** What was used, what was changed, and how the project is set. */
export function define(program: Command): void {
  const usage = program
    .command("usage")
    .description("show the usage of a month, with its limits")
    .option(...PERIOD)
    .addHelpText("after", examples("usage", "usage --period 2026-11 --json"))
    .action(lazily(async () => (await import("../usage")).usage))

  usage
    .command("mine")
    .description("show the total usage of all accounts that you own")
    .addHelpText("after", examples("usage mine"))
    .action(lazily(async () => (await import("../usage")).mine))

  usage
    .command("reconcile")
    .description("count the usage of a month again, and show the difference")
    .option(...PERIOD)
    .addHelpText("after", examples("usage reconcile"))
    .action(lazily(async () => (await import("../usage")).reconcile))

  program
    .command("audit")
    .description("list the changes of the account, newest first")
    .option("--actor <id>", "show only changes by this person or key")
    .option("--action <name>", "show only this action, for example member.removed")
    .option("--target <type>", "show only changes of this kind of object, for example project")
    .option(...SINCE)
    .option(...UNTIL)
    .option(...LIMIT)
    .addHelpText("after", examples("audit --since 24h", "audit --action api_key.created"))
    .action(lazily(async () => (await import("../usage")).audit))

  defineSettings(
    program
      .command("settings")
      .description("show and change the settings of the project")
      .addHelpText("after", examples("settings get")),
  )
}

function defineSettings(settings: Command) {
  settings
    .command("get [name]")
    .description("show all settings, or one")
    .addHelpText("after", examples("settings get", "settings get sandbox"))
    .action(lazily(async () => (await import("../project-settings")).get))

  settings
    .command("set <name=value...>")
    .description("change settings; null restores the default")
    .addHelpText(
      "after",
      examples("settings set sandbox=true", "settings set default_from=me@example.test"),
    )
    .action(lazily(async () => (await import("../project-settings")).set))
}
