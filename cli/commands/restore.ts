import type { Command } from "commander"
import { DATA_DIR, SET } from "../lib/flags"
import { examples, lazily, several } from "../lib/run"

/** The command that turns a backup into the data of a server. */
export function define(program: Command): void {
  program
    .command("restore <file>")
    .description("restore a backup into an empty data folder or database; its open work is held")
    .option("--master-key <file>", "file with the master key of the backup")
    .option("--revoke-keys", "revoke every API key of the backup")
    .option(...DATA_DIR)
    .option(...SET, several)
    .addHelpText(
      "after",
      examples(
        "restore belfry.tar --master-key master.key --dry-run",
        "restore belfry.tar --master-key master.key --data-dir /var/lib/belfry",
      ),
    )
    .action(lazily(async () => (await import("../local/restore")).restore))
}
