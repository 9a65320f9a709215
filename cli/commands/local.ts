import { type Command, Option } from "commander"
import type { Action } from "../lib/context"
import { version } from "../lib/environment"
import { exits } from "../lib/errors"
import { DATA_DIR, SET } from "../lib/flags"
import { addCommand, examples, lazily, run, several } from "../lib/run"
import { fields } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import type { LocalOptions } from "../local/settings"

const NEW = "create a new database if this folder has lost its own"

/** Commands of this machine: those that open the data themselves, and what tells about a server. */
export function define(program: Command): void {
  const upWords = ["up", "up --port 0 --data-dir /tmp/belfry --json"]
  addCommand(program, "up", "start a server for one person: API, delivery, mailbox", ...upWords)
    .option("--port <number>", "HTTP port, 0 for a free one (default: 8080 or a free one)")
    .option(...DATA_DIR)
    .option("--new", NEW)
    .option("--new-key", "revoke the API key of this folder, and create a new one")
    .action(lazily(async () => (await import("../local/up")).up))

  const link = "print a link that signs in to the pages of `belfry up`, once, on this machine"
  addCommand(program, "open", link, "open", "open --json")
    .option(...DATA_DIR)
    .action(lazily(async () => (await import("../local/admin")).open))

  addCommand(
    program,
    "serve",
    "run the service with your configuration, until SIGTERM",
    "serve --listen 127.0.0.1:8080 --data-dir /var/lib/belfry",
    "serve --config /etc/belfry.toml --set log.level=debug",
  )
    .option("--listen <address>", "HTTP address, for example 0.0.0.0:8080")
    .option(...DATA_DIR)
    .option(...SET, several)
    .option("--new", NEW)
    .option(
      "--hold",
      "hold all open work of the database: use it for a data folder that was put back",
    )
    .action(lazily(async () => (await import("../local/serve")).serve))

  for (const [name, about] of [
    ["init", "create the master key, account, project and API key"],
    ["migrate", "update the database schema; --dry-run lists the steps"],
  ] as const) {
    const words = [`${name} --data-dir /var/lib/belfry`, `${name} --json`]
    const command = addCommand(program, name, about, ...words)
      .option(...DATA_DIR)
      .option(...SET, several)
    if (name === "init") command.option("--new", NEW)
    else command.addOption(new Option("--upgrade <id>").hideHelp()) // see enterMigration
    command.action(lazily(async () => (await import("../local/init"))[name]))
  }

  defineUpgrade(program)
  defineConfig(program)

  const statusWords = ["status", "status --url https://mail.example.test --json"]
  addCommand(
    program,
    "status",
    "show whether the server runs and accepts work",
    ...statusWords,
  ).action(run(status))
  addCommand(program, "version", "print the version and the platform", "version").action(
    run(versions),
  )

  program
    .command("tui")
    .description("watch messages, webhooks and the queue live")
    .addHelpText(
      "after",
      `${examples("tui", "tui --profile prod")}

Keys: 1 Messages, 2 Webhooks, 3 Queue, / filter, : command, ? help, q quit.
Without a terminal, use \`belfry emails tail --ndjson\`.`,
    )
    .action(lazily(async () => (await import("../tui/monitor")).open))
}

function defineUpgrade(program: Command): void {
  addCommand(
    program,
    "smoke",
    "try this binary in a scratch folder: send, webhook, template, SMTP, received mail",
    "smoke",
    "smoke --format junit > smoke.xml",
  )
    .option("--format <format>", "lines, tap or junit")
    .action(lazily(async () => (await import("../local/smoke")).smoke))

  addCommand(
    program,
    "upgrade",
    "replace this program by a newer release, and go back when that release fails",
    "upgrade belfry-0.2.0-linux-x64.tar.gz --check",
    "upgrade https://example.com/belfry-0.2.0-linux-x64.tar.gz",
  )
    .argument("<file>", "archive of a release, with its .minisig beside it, or an https URL")
    .option("--check", "check signature, platform and migrations; change nothing")
    .option("--no-migrate", "stop if the new version needs migrations")
    .option("--public-key <key>", "key of the releases: a file minisign.pub, or its second line")
    .option(...DATA_DIR)
    .option(...SET, several)
    .action(lazily(async () => (await import("../local/upgrade")).upgrade))
}

/** The settings of a server on this machine: flags > BELFRY_* > file > defaults. */
function defineConfig(program: Command): void {
  const about = "show the settings that a server uses on this machine"
  const config = addCommand(program, "config", about, "config show")
  const action = (name: "show" | "get" | "explain" | "path") =>
    lazily<LocalOptions>(async () => (await import("../local/config"))[name])
  const list = "list every setting with its source; secrets are masked"
  addCommand(config, "show", list, "config show", "config show --config /etc/belfry.toml")
    .option(...SET, several)
    .action(action("show"))
  addCommand(config, "get <key>", "print the value of one setting", "config get data_dir").action(
    action("get"),
  )
  const all = "explain one setting: value, source, default and meaning"
  addCommand(config, "explain <key>", all, "config explain http.listen").action(action("explain"))
  const paths = "show the paths of configuration, profiles and data"
  addCommand(config, "path", paths, "config path").action(action("path"))
}

type Health = { status: string; version: string; uptime_seconds: number }
type Ready = { status: string; checks: Record<string, unknown>; warnings?: string[] }

/**
 * Exit 0 when the server accepts work, 75 when it runs but does not, 69 when there is none. The
 * request carries neither a key nor a token.
 */
const status: Action<object> = async (context) => {
  const client = context.anonymous()
  const health = (await client.plain("/healthz")).body as Health
  const readiness = await client.plain("/readyz")
  const ready = readiness.body as Ready
  const record = {
    url: client.url,
    profile: context.connection().profile,
    live: health.status === "ok",
    ready: readiness.status === 200,
    version: health.version,
    cli_version: version,
    uptime_seconds: health.uptime_seconds,
    checks: ready.checks ?? {},
    warnings: ready.warnings ?? [],
  }
  await context.output.record(record, () => shown(record, context.paint))
  return record.live && record.ready ? exits.done : exits.try_later
}

type Shown = Omit<Health, "status"> &
  Required<Omit<Ready, "status">> & { url: string; profile: string | null; ready: boolean }

function shown(record: Shown, paint: Paint): string {
  const mark = record.ready ? `${paint.green("✓")} ready` : `${paint.red("✗")} not ready`
  const told = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))
  const checks = Object.entries(record.checks).map(([name, value]) => [name, told(value)] as const)
  return [
    `${mark}  ${record.url}`,
    fields(
      [
        ["profile", record.profile],
        ["version", record.version],
        ["running for", `${record.uptime_seconds} s`],
        ...checks,
      ],
      paint,
    ),
    ...record.warnings.map((warning) => `${paint.yellow("!")} ${cleanLine(warning)}`),
  ].join("\n")
}

const versions: Action<object> = async ({ output }) => {
  const record = {
    version,
    runtime: `bun ${Bun.version}`,
    platform: `${process.platform}-${process.arch}`,
  }
  const human = () => `belfry ${version} (${record.runtime}, ${record.platform})`
  await output.record(record, human, version)
}
