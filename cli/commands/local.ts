import type { Command } from "commander"
import { DATA_DIR, SET } from "../lib/flags"
import { examples, lazily, run, several } from "../lib/run"
import { status, versions } from "./status"

const NEW = "create a new database if this folder has lost its own"

/** Commands of this machine: those that open the data themselves, and what tells about a server. */
export function define(program: Command): void {
  program
    .command("up")
    .description("start a server for one person: API, delivery, mailbox")
    .option("--port <number>", "HTTP port, 0 for a free one (default: 8080 or a free one)")
    .option(...DATA_DIR)
    .option("--new", NEW)
    .option("--new-key", "revoke the API key of this folder, and create a new one")
    .addHelpText("after", examples("up", "up --port 0 --data-dir /tmp/belfry --json"))
    .action(lazily(async () => (await import("../local/up")).up))

  program
    .command("serve")
    .description("run the service with your configuration, until SIGTERM")
    .option("--listen <address>", "HTTP address, for example 0.0.0.0:8080")
    .option(...DATA_DIR)
    .option(...SET, several)
    .option("--new", NEW)
    .addHelpText(
      "after",
      examples(
        "serve --listen 127.0.0.1:8080 --data-dir /var/lib/belfry",
        "serve --config /etc/belfry.toml --set log.level=debug",
      ),
    )
    .action(lazily(async () => (await import("../local/serve")).serve))

  for (const [name, about] of [
    ["init", "create the master key, account, project and API key"],
    ["migrate", "update the database schema; --dry-run lists the steps"],
  ] as const) {
    const command = program
      .command(name)
      .description(about)
      .option(...DATA_DIR)
      .option(...SET, several)
    if (name === "init") command.option("--new", NEW)
    command
      .addHelpText("after", examples(`${name} --data-dir /var/lib/belfry`, `${name} --json`))
      .action(lazily(async () => (await import("../local/init"))[name]))
  }

  program
    .command("status")
    .description("show whether the server runs and accepts work")
    .addHelpText("after", examples("status", "status --url https://mail.example.test --json"))
    .action(run(status))

  program
    .command("version")
    .description("print the version and the platform")
    .addHelpText("after", examples("version"))
    .action(run(versions))
}
