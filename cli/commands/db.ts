import type { Command } from "commander"
import { DATA_DIR, SET } from "../lib/flags"
import { examples, lazily, several } from "../lib/run"

/** Commands for the database of this machine. They need no credential. */
export function define(program: Command): void {
  const db = program
    .command("db")
    .description("check the database of this machine, and show what fills it")
    .addHelpText("after", examples("db check"))

  db.command("check")
    .description("check the file, the invariants, and the files that rows name; changes nothing")
    .option(...DATA_DIR)
    .option(...SET, several)
    .addHelpText("after", examples("db check", "db check --data-dir /var/lib/belfry --json"))
    .action(lazily(async () => (await import("../local/db-check")).check))

  db.command("stats")
    .description("show the bytes of tables and projects, and the bytes that retention will free")
    .option(...DATA_DIR)
    .option(...SET, several)
    .addHelpText("after", examples("db stats", "db stats --data-dir /var/lib/belfry --json"))
    .action(lazily(async () => (await import("../local/db-stats")).stats))
}
