import type { Command } from "commander"
import { examples, lazily, several } from "../action"

/** The settings of a server on this machine: flags > BELFRY_* > file > defaults. */
export function define(program: Command): void {
  const config = program
    .command("config")
    .description("show the settings that a server here would start with")
    .addHelpText("after", examples("config show"))

  config
    .command("show")
    .description("every setting, and where it comes from; secrets are masked")
    .option("--set <key=value>", "as if given to serve; may be repeated", several)
    .addHelpText("after", examples("config show", "config show --config /etc/belfry.toml"))
    .action(lazily(async () => (await import("../local/config")).show))

  config
    .command("get <key>")
    .description("the value of one setting")
    .addHelpText("after", examples("config get data_dir"))
    .action(lazily(async () => (await import("../local/config")).get))

  config
    .command("explain <key>")
    .description("value, source, default and meaning of one setting")
    .addHelpText("after", examples("config explain http.listen"))
    .action(lazily(async () => (await import("../local/config")).explain))

  config
    .command("path")
    .description("the files that are read")
    .addHelpText("after", examples("config path"))
    .action(lazily(async () => (await import("../local/config")).path))
}
