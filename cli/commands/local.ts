import type { Action } from "../lib/context"
import { version } from "../lib/environment"
import { exits } from "../lib/errors"
import type { OptionWords } from "../lib/field-flags"
import { DATA_DIR, HERE, SET } from "../lib/flags"
import { own, type Resource } from "../lib/resource"
import { later } from "../lib/run"
import { fields } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import type { LocalOptions } from "../local/settings"

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

const NEW: OptionWords = [
  "--new",
  "create an empty database if the database of this folder is missing",
]

const up = later(async () => (await import("../local/up")).up)
const serve = later(async () => (await import("../local/serve")).serve)
const open = later(async () => (await import("../local/admin")).open)
const init = later(async () => (await import("../local/init")).init)
const migrate = later(async () => (await import("../local/init")).migrate)
const smoke = later(async () => (await import("../local/smoke")).smoke)
const upgrade = later(async () => (await import("../local/upgrade")).upgrade)
const restore = later(async () => (await import("../local/restore")).restore)
const monitor = later(async () => (await import("../tui/monitor")).open)

/** Commands of this machine: those that open the data themselves, and what tells about a server. */
export const localRows = [
  own("up", up, {
    about: "start a server for one person: API, delivery, mailbox",
    example: ["", "--port 0 --data-dir /tmp/belfry --json"],
    options: [
      ["--port <number>", "HTTP port, 0 for a free one (default: 8080 or a free one)"],
      ...[DATA_DIR, NEW],
      ["--new-key", "revoke the API key of this folder, and create a new one"],
    ],
  }),
  own("open", open, {
    about: "print a link that signs in to the pages of `belfry up`, once, on this machine",
    example: ["", "--json"],
    options: [DATA_DIR],
  }),
  own("serve", serve, {
    about: "run the service with your configuration, until SIGTERM",
    example: [
      "--listen 127.0.0.1:8080 --data-dir /var/lib/belfry",
      "--config /etc/belfry.toml --set log.level=debug",
    ],
    options: [
      ["--listen <address>", "HTTP address, for example 0.0.0.0:8080"],
      ...[...HERE, NEW],
      ["--hold", "hold all open work of the database: use it for a data folder that was put back"],
    ],
  }),
  own("init", init, {
    about: "create the master key, account, project and API key",
    example: ["--data-dir /var/lib/belfry", "--json"],
    options: [...HERE, NEW],
  }),
  own("migrate", migrate, {
    about: "update the database schema; --dry-run lists the steps",
    example: ["--data-dir /var/lib/belfry", "--json"],
    options: [...HERE, ["--upgrade <id>", "", "hidden"]], // see enterMigration
  }),
  own("smoke", smoke, {
    about:
      "try this binary in a scratch folder: send, text, webhook, template, SMTP, received mail",
    example: ["", "--format junit > smoke.xml"],
    options: [["--format <format>", "lines, tap or junit"]],
  }),
  own("upgrade <file>", upgrade, {
    about: "replace this program by a newer release, and go back when that release fails",
    argument: "archive of a release, with its .minisig beside it, or an https URL",
    word: "",
    example: [
      "belfry-0.2.0-linux-x64.tar.gz --check",
      "https://example.com/belfry-0.2.0-linux-x64.tar.gz",
    ],
    options: [
      ["--check", "check signature, platform and migrations; change nothing"],
      ["--no-migrate", "stop if the new version needs migrations"],
      ["--public-key <key>", "key of the releases: a file minisign.pub, or its second line"],
      ...HERE,
    ],
  }),
  own("restore <file>", restore, {
    about: "restore a backup into an empty data folder or database; its open work is held",
    word: "belfry.tar --master-key master.key",
    example: ["--dry-run", "--data-dir /var/lib/belfry"],
    options: [
      ...HERE,
      ["--master-key <file>", "file with the master key of the backup"],
      ["--revoke-keys", "revoke every API key of the backup"],
    ],
  }),
  own("status", status, {
    about: "show whether the server runs and accepts work",
    example: ["", "--url https://mail.example.test --json"],
  }),
  own("version", versions, { about: "print the version and the platform" }),
  own("tui", monitor, {
    about: "watch messages, webhooks and the queue live",
    example: ["", "--profile prod"],
    end: "Keys: 1 Messages, 2 Webhooks, 3 Queue, / filter, : command, ? help, q quit.\nWithout a terminal, use `belfry emails tail --ndjson`.",
  }),
]

const config = (name: keyof typeof import("../local/config")) =>
  later<LocalOptions>(async () => (await import("../local/config"))[name])

/** The settings of a server on this machine: flags > BELFRY_* > file > defaults. */
export const configResource: Resource = {
  noun: "config",
  about: "show the settings that a server uses on this machine",
  example: "config show",
  rows: [
    own("show", config("show"), {
      about: "list every setting with its source; secrets are masked",
      example: ["", "--config /etc/belfry.toml"],
      options: [SET],
    }),
    own("get <key>", config("get"), { about: "print the value of one setting", word: "data_dir" }),
    own("explain <key>", config("explain"), {
      about: "explain one setting: value, source, default and meaning",
      word: "http.listen",
    }),
    own("path", config("path"), { about: "show the paths of configuration, profiles and data" }),
  ],
}

const backup = (name: "create" | "list" | "verify") =>
  later(async () => (await import("../local/backup"))[name])
const dbCheck = later(async () => (await import("../local/db-check")).check)
const dbStats = later(async () => (await import("../local/db-stats")).stats)

export const backupResource: Resource = {
  noun: "backup",
  about: "make, list and verify backups of this machine",
  example: ["backup create", "backup list"],
  rows: [
    own("create", backup("create"), {
      about: "make a backup now, beside a running server or without one",
      example: ["", "--data-dir /var/lib/belfry"],
      options: HERE,
    }),
    own("list", backup("list"), {
      about: "list the backups, the newest first",
      example: ["", "--json=id,path,created_at"],
      options: HERE,
    }),
    own("verify [backup]", backup("verify"), {
      about: "read a backup whole, by its path or id (default: the newest), and check it",
      example: ["", "/mnt/copies/belfry.tar --json"],
      options: HERE,
    }),
  ],
}

export const databaseResource: Resource = {
  noun: "db",
  about: "check the database of this machine, and show what fills it",
  example: "db check",
  rows: [
    own("check", dbCheck, {
      about: "check the file, the invariants, and the files that rows name; changes nothing",
      example: ["", "--data-dir /var/lib/belfry --json"],
      options: HERE,
    }),
    own("stats", dbStats, {
      about: "show the bytes of tables and projects, and the bytes that retention will free",
      example: ["", "--data-dir /var/lib/belfry --json"],
      options: HERE,
    }),
  ],
}
