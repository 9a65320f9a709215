import type { Command } from "commander"
import { DATA_DIR, SET } from "../lib/flags"
import { examples, lazily, several } from "../lib/run"

/** Commands for the backups of this machine. They need no credential. */
export function define(program: Command): void {
  const backup = program
    .command("backup")
    .description("make, list and verify backups of this machine")
    .addHelpText("after", examples("backup create", "backup list"))

  backup
    .command("create")
    .description("make a backup now, beside a running server or without one")
    .option(...DATA_DIR)
    .option(...SET, several)
    .addHelpText("after", examples("backup create", "backup create --data-dir /var/lib/belfry"))
    .action(lazily(async () => (await import("../local/backup")).create))

  backup
    .command("list")
    .description("list the backups, the newest first")
    .option(...DATA_DIR)
    .option(...SET, several)
    .addHelpText("after", examples("backup list", "backup list --json=id,path,created_at"))
    .action(lazily(async () => (await import("../local/backup")).list))

  backup
    .command("verify [backup]")
    .description("read a backup whole, by its path or id (default: the newest), and check it")
    .option(...DATA_DIR)
    .option(...SET, several)
    .addHelpText("after", examples("backup verify", "backup verify /mnt/copies/belfry.tar --json"))
    .action(lazily(async () => (await import("../local/backup")).verify))
}
