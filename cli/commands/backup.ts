import type { Command } from "commander"
import { DATA_DIR, SET } from "../lib/flags"
import { examples, lazily, several } from "../lib/run"

/** Commands for the data of this machine: its backups and its database. They need no credential. */
export function define(program: Command): void {
  const backup = program
    .command("backup")
    .description("make, list and verify backups of this machine")
    .addHelpText("after", examples("backup create", "backup list"))
  ofData(backup.command("create"))
    .description("make a backup now, beside a running server or without one")
    .addHelpText("after", examples("backup create", "backup create --data-dir /var/lib/belfry"))
    .action(lazily(async () => (await import("../local/backup")).create))
  ofData(backup.command("list"))
    .description("list the backups, the newest first")
    .addHelpText("after", examples("backup list", "backup list --json=id,path,created_at"))
    .action(lazily(async () => (await import("../local/backup")).list))
  ofData(backup.command("verify [backup]"))
    .description("read a backup whole, by its path or id (default: the newest), and check it")
    .addHelpText("after", examples("backup verify", "backup verify /mnt/copies/belfry.tar --json"))
    .action(lazily(async () => (await import("../local/backup")).verify))

  const restore = "restore belfry.tar --master-key master.key"
  ofData(program.command("restore <file>"))
    .description("restore a backup into an empty data folder or database; its open work is held")
    .option("--master-key <file>", "file with the master key of the backup")
    .option("--revoke-keys", "revoke every API key of the backup")
    .addHelpText("after", examples(`${restore} --dry-run`, `${restore} --data-dir /var/lib/belfry`))
    .action(lazily(async () => (await import("../local/restore")).restore))

  const db = program
    .command("db")
    .description("check the database of this machine, and show what fills it")
    .addHelpText("after", examples("db check"))
  ofData(db.command("check"))
    .description("check the file, the invariants, and the files that rows name; changes nothing")
    .addHelpText("after", examples("db check", "db check --data-dir /var/lib/belfry --json"))
    .action(lazily(async () => (await import("../local/db-check")).check))
  ofData(db.command("stats"))
    .description("show the bytes of tables and projects, and the bytes that retention will free")
    .addHelpText("after", examples("db stats", "db stats --data-dir /var/lib/belfry --json"))
    .action(lazily(async () => (await import("../local/db-stats")).stats))
}

const ofData = (command: Command): Command => command.option(...DATA_DIR).option(...SET, several)
