import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import { fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { given, onOff } from "../lib/input"
import { askHidden } from "../lib/prompts"
import { asks, groupOf, ID, row } from "../lib/resource"
import { examples, run, several } from "../lib/run"
import { ago, fields, idColumn, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"

type ProviderConfig = Components["ProviderConfig"]

const KIND = "email_provider"

const params = { kind: KIND }

const statusOf = ({ enabled, status }: ProviderConfig) => (enabled ? status : "off")

export const providerRows = [
  row("list", "GET /v1/providers", {
    example: "--kind email_provider",
    columns: {
      ID: idColumn("provider"),
      PROVIDER: "provider",
      NAME: wide(({ name }) => name),
      ORDER: "priority",
      STATUS: {
        cell: statusOf,
        paint: (text, config, paint) =>
          statusOf(config) === "active" ? paint.green(text) : paint.red(text),
      },
      "LAST ERROR": wide(({ last_error }) => last_error),
      "NEXT TRY": ago(({ next_probe_at }) => next_probe_at),
      AGE: ago(({ created_at }) => created_at),
    },
  }),
  row("get <id>", "GET /v1/providers/{kind}/config/{config_id}", { params, shown: shownProvider }),
  row("test <id>", "POST /v1/providers/{kind}/config/{config_id}/test", {
    about: "log in at a provider, or send a mail with --to; success lets waiting mail go on",
    params,
    example: "--to ann@example.com",
    note: "`providers test instance` tests the provider of the instance itself.",
    flags: { to: "send a test mail to this address, from the project's default_from" },
    done: ({ detail, duration_ms }) => `${detail} (${duration_ms} ms)`,
  }),
  row("delete <id>", "DELETE /v1/providers/{kind}/config/{config_id}", {
    params,
    example: "--yes",
    confirm: asks(
      (id) =>
        `Provider ${id} and its credentials will be deleted. The next provider delivers the mail.`,
      "delete",
    ),
    done: ({ id }) => `deleted ${id}`,
  }),
]

/** The providers that deliver the mail of the project. */
export function define(program: Command): void {
  const providers = groupOf(program, "providers")
  defineSet(providers)

  withAccess(providers.command("update <id>"))
    .description("change the settings or credentials of a provider, or switch it on or off")
    .option("--name <name>", "new name")
    .option("--priority <number>", "order of use: the lowest number is first")
    .option("--enabled <on|off>", "switch the provider on or off")
    .option("--max-per-second <number>", "maximum messages per second, or none for no limit")
    .option(
      "--spf <mechanism>",
      "mechanism that SPF records need, or none; may be repeated",
      several,
    )
    .addHelpText(
      "after",
      examples(
        `providers update ${ID} --priority 10`,
        `providers update ${ID} --secret-stdin < secret`,
      ),
    )
    .action(run(update))
}

const SMTP = "providers set smtp --host smtp.example.com --username apikey --secret-stdin < secret"
const SES = "providers set ses --region eu-west-1 --access-key-id AKIA… --secret-stdin < secret"

function defineSet(providers: Command) {
  withAccess(providers.command("set <provider>"))
    .description("configure smtp, ses, direct or mailbox; an existing name is replaced")
    .option("--name <name>", "name (default: the provider, for example smtp)")
    .option("--priority <number>", "order of use: the lowest number is first (default: 100)")
    .option("--max-per-second <number>", "maximum messages per second (default: no limit)")
    .option("--spf <mechanism>", "mechanism that SPF records need; may be repeated", several)
    .addHelpText("after", examples(SMTP, SES))
    .action(run(set))
}

const withAccess = (command: Command) =>
  command
    .option("--host <host>", "smtp: host name of the relay")
    .option("--port <number>", "smtp: port of the relay (default: 587)")
    .option("--username <name>", "smtp: user name")
    .option("--password <secret>", "smtp: password; safer with --secret-stdin")
    .option("--tls <mode>", "smtp: starttls, implicit or none (default: starttls)")
    .option("--region <region>", "ses: AWS region, for example eu-west-1")
    .option("--access-key-id <id>", "ses: id of the access key")
    .option("--secret-access-key <secret>", "ses: secret access key; safer with --secret-stdin")
    .option("--configuration-set <name>", "ses: configuration set that publishes the events")
    .option("--secret-stdin", "read the password or secret key from stdin (default: ask for it)")

const ALL = "POST /v1/providers/{kind}/config"
const ONE = "GET /v1/providers/{kind}/config/{config_id}"
const CHANGE = "PATCH /v1/providers/{kind}/config/{config_id}"

interface Access {
  host?: string
  port?: string
  username?: string
  password?: string
  tls?: string
  region?: string
  accessKeyId?: string
  secretAccessKey?: string
  configurationSet?: string
  secretStdin?: boolean
}

interface SetOptions extends Access {
  name?: string
  priority?: string
  maxPerSecond?: string
  spf?: string[]
}

/** The same provider and name replaces what there is. */
const set: Action<SetOptions> = async (context, options, provider = "") => {
  const { output, paint } = context
  output.promises(fieldsOf(ALL))
  const body = {
    provider,
    credentials: await credentialsOf(context, provider, options),
    ...given({
      name: options.name,
      priority: numberOf(options.priority, "--priority"),
      settings: settingsOf(options),
    }),
  }
  const { data } = await context.client().call(ALL, { params: { kind: KIND }, body })
  await output.record(data, () => `${paint.green("✓")} ${data.provider} ${data.name} (${data.id})`)
  if (data.callback_url) await output.next(`send the SES notifications to ${data.callback_url}`)
  else await output.next(`belfry providers test ${data.id}`)
}

/** Which of them is a secret, and under which name it is asked for. */
const SECRETS: Record<string, { name: string; needed_by: keyof Access; question: string }> = {
  smtp: { name: "password", needed_by: "username", question: "Password" },
  ses: { name: "secret_access_key", needed_by: "accessKeyId", question: "Secret access key" },
}

async function credentialsOf(context: Context, provider: string, options: Access) {
  const { host, username, tls, region } = options
  const plain = given({
    host,
    port: numberOf(options.port, "--port"),
    username,
    tls,
    region,
    access_key_id: options.accessKeyId,
    configuration_set: options.configurationSet,
  })
  const secret = SECRETS[provider]
  if (!secret || options[secret.needed_by] === undefined) return plain
  const flag = options.password ?? options.secretAccessKey
  return { ...plain, [secret.name]: flag ?? (await secretOf(context, options, secret.question)) }
}

/** From stdin or typed, and shown nowhere. */
async function secretOf(context: Context, { secretStdin }: Access, question: string) {
  if (!secretStdin) return askHidden(context, question, "give it with --secret-stdin")
  const [line = ""] = (await Bun.stdin.text()).split(/\r?\n/)
  if (line === "") throw usage("--secret-stdin: the first line of stdin is empty")
  return line
}

function settingsOf({ maxPerSecond, spf }: SetOptions) {
  const settings = given({ max_per_second: numberOf(maxPerSecond, "--max-per-second"), spf })
  return Object.keys(settings).length > 0 ? settings : undefined
}

function numberOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() === "" || !Number.isFinite(value))
    throw usage(`${option}: "${text}" is not a number`)
  return value
}

interface UpdateOptions extends Access {
  name?: string
  priority?: string
  enabled?: string
  maxPerSecond?: string
  spf?: string[]
}

const update: Action<UpdateOptions> = async (context, options, id = "") => {
  const changes = given({
    name: options.name,
    priority: numberOf(options.priority, "--priority"),
    enabled: onOff(options.enabled, "--enabled"),
    settings: changedSettings(options),
    credentials: await changedCredentials(context, id, options),
  })
  if (Object.keys(changes).length === 0) throw usage("nothing to change", "see --help")
  context.output.promises(fieldsOf(ALL))
  const { data } = await context.client().call(CHANGE, {
    params: { kind: KIND, config_id: id },
    body: changes,
  })
  await context.output.record(data, () => shownProvider(data, context.paint))
}

/** What is not named stays, and `none` forgets a setting. */
function changedSettings({ maxPerSecond, spf }: SetOptions) {
  const forgets = { pace: maxPerSecond === "none", spf: spf?.join() === "none" }
  const settings = {
    ...settingsOf({
      ...(maxPerSecond !== undefined && !forgets.pace && { maxPerSecond }),
      ...(spf && !forgets.spf && { spf }),
    }),
    ...(forgets.pace && { max_per_second: null }),
    ...(forgets.spf && { spf: null }),
  }
  return Object.keys(settings).length > 0 ? settings : undefined
}

const ACCESS = [
  ...(["host", "port", "username", "password", "tls", "region"] as const),
  ...(["accessKeyId", "secretAccessKey", "configurationSet", "secretStdin"] as const),
]

/** What is not named stays as it is shown, but for the secrets, which are given or asked for anew. */
async function changedCredentials(context: Context, id: string, options: Access) {
  if (ACCESS.every((name) => options[name] === undefined)) return undefined
  const { data } = await context.client().call(ONE, { params: { kind: KIND, config_id: id } })
  const { password: _, access_key_id: __, secret_access_key: ___, ...kept } = data.credentials ?? {}
  const { username, access_key_id } = data.credentials ?? {}
  if (access_key_id !== undefined && options.accessKeyId === undefined) {
    throw usage("--access-key-id is missing: the stored id is hidden, so give it again")
  }
  const known = typeof username === "string" ? { username } : {}
  const changed = await credentialsOf(context, data.provider, { ...known, ...options })
  return { ...kept, ...changed }
}

function shownProvider(config: ProviderConfig, paint: Paint): string {
  const credentials = Object.entries(config.credentials ?? {})
  return fields(
    [
      ["id", config.id],
      ["provider", config.provider],
      ["name", config.name],
      ["order", String(config.priority)],
      ["status", statusOf(config)],
      ["last error", config.last_error],
      ["next try", config.next_probe_at],
      ...credentials.map(([name, value]): [string, string] => [name, String(value)]),
      ["per second", config.settings?.max_per_second?.toString()],
      ["spf", config.settings?.spf?.join(" ")],
      ["callback", config.callback_url],
      ["created", config.created_at],
    ],
    paint,
  )
}
