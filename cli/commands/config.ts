import type { Command } from "commander"
import { SET } from "../lib/flags"
import { examples, lazily, several } from "../lib/run"

/** The settings of a server on this machine: flags > BELFRY_* > file > defaults. */
export function define(program: Command): void {
  const config = program
    .command("config")
    .description("show the settings that a server uses on this machine")
    .addHelpText("after", examples("config show"))

  config
    .command("show")
    .description("list every setting with its source; secrets are masked")
    .option(...SET, several)
    .addHelpText("after", examples("config show", "config show --config /etc/belfry.toml"))
    .action(lazily(async () => (await import("../local/config")).show))

  config
    .command("get <key>")
    .description("print the value of one setting")
    .addHelpText("after", examples("config get data_dir"))
    .action(lazily(async () => (await import("../local/config")).get))

  config
    .command("explain <key>")
    .description("explain one setting: value, source, default and meaning")
    .addHelpText("after", examples("config explain http.listen"))
    .action(lazily(async () => (await import("../local/config")).explain))

  config
    .command("path")
    .description("show the paths of configuration, profiles and data")
    .addHelpText("after", examples("config path"))
    .action(lazily(async () => (await import("../local/config")).path))
}
