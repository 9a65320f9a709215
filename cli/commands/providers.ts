import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import type { ProviderFormField } from "../../src/client/provider-form"
import { providerForms } from "../../src/client/provider-forms"
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
    about: "list the providers of the project, newest first",
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
  row("get <id>", "GET /v1/providers/{kind}/config/{config_id}", {
    params,
    about: "show one provider, and the last 4 characters of its secrets",
    shown: shownProvider,
  }),
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

const names = providerForms.map(({ name }) => name)

function defineSet(providers: Command) {
  const shown = providerForms.flatMap(({ name, example }) =>
    example === undefined ? [] : [`providers set ${name} ${example}`],
  )
  withAccess(providers.command("set <provider>"))
    .description(`configure ${listOf(names)}; an existing name is replaced`)
    .option("--name <name>", "name (default: the provider, for example smtp)")
    .option("--priority <number>", "order of use: the lowest number is first (default: 100)")
    .option("--max-per-second <number>", "maximum messages per second (default: no limit)")
    .option("--spf <mechanism>", "mechanism that SPF records need; may be repeated", several)
    .addHelpText("after", examples(...shown))
    .action(run(set))
}

const listOf = (words: string[]) => `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`

/** A flag for each field of any provider; one that several have is one flag. */
function withAccess(command: Command): Command {
  const all = providerForms.flatMap(({ name, fields }) =>
    Object.entries(fields).map(([field, form]) => ({ name, field, form })),
  )
  for (const [field, some] of Map.groupBy(all, ({ field }) => field)) {
    const [{ form }] = some as [(typeof some)[number]]
    command.option(
      `${flagOf(field)} <${placeholderOf(field, form)}>`,
      some.map((one) => `${one.name}: ${aboutOf(one.form)}`).join("; "),
    )
  }
  return command.option(
    "--secret-stdin",
    "read the password or secret key from stdin (default: ask for it)",
  )
}

const flagOf = (field: string) => `--${field.replaceAll("_", "-")}`

const placeholderOf = (field: string, { value, type, asked_with }: ProviderFormField) =>
  asked_with ? "secret" : type === "integer" ? "number" : (value ?? field.split("_").at(-1))

const aboutOf = ({ about, fallback, asked_with }: ProviderFormField) =>
  `${about}${asked_with ? "; safer with --secret-stdin" : ""}${fallback === undefined ? "" : ` (default: ${fallback})`}`

const ALL = "POST /v1/providers/{kind}/config"
const ONE = "GET /v1/providers/{kind}/config/{config_id}"
const CHANGE = "PATCH /v1/providers/{kind}/config/{config_id}"

/** Values of credentials, by the names of their flags. */
type Access = Record<string, unknown>

const optionOf = (field: string) =>
  field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const formOf = (provider: string) => providerForms.find(({ name }) => name === provider)

/** The server refuses a provider that this command line does not know. */
const kindOf = (provider: string) => `${formOf(provider)?.channel ?? "email"}_provider` as const

interface SetOptions {
  name?: string
  priority?: string
  maxPerSecond?: string
  spf?: string[]
}

/** The same provider and name replaces what there is. */
const set: Action<SetOptions & Access> = async (context, options, provider = "") => {
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
  const { data } = await context.call(ALL, { params: { kind: kindOf(provider) }, body })
  await output.record(data, () => `${paint.green("✓")} ${data.provider} ${data.name} (${data.id})`)
  const { about = provider } = formOf(provider) ?? {}
  if (data.callback_url) {
    await output.next(`send the notifications of ${about} to ${data.callback_url}`)
  } else await output.next(`belfry providers test ${data.id}`)
}

async function credentialsOf(context: Context, provider: string, options: Access) {
  const credentials: Record<string, unknown> = {}
  for (const [field, form] of Object.entries(formOf(provider)?.fields ?? {})) {
    const text = options[optionOf(field)]
    if (typeof text === "string") credentials[field] = valueFrom(text, field, form)
    else if (form.asked_with && options[optionOf(form.asked_with)] !== undefined) {
      const question = form.about.replace(/^./, (letter) => letter.toUpperCase())
      credentials[field] = await secretOf(context, options, question)
    }
  }
  return credentials
}

function valueFrom(text: string, field: string, { type }: ProviderFormField): unknown {
  if (type === "integer") return numberOf(text, flagOf(field))
  if (type !== "object") return text
  try {
    return JSON.parse(text)
  } catch {
    throw usage(`${flagOf(field)}: the value is not a JSON object`)
  }
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

interface UpdateOptions extends SetOptions {
  enabled?: string
}

const update: Action<UpdateOptions & Access> = async (context, options, id = "") => {
  const changes = given({
    name: options.name,
    priority: numberOf(options.priority, "--priority"),
    enabled: onOff(options.enabled, "--enabled"),
    settings: changedSettings(options),
    credentials: await changedCredentials(context, id, options),
  })
  if (Object.keys(changes).length === 0) throw usage("nothing to change", "see --help")
  context.output.promises(fieldsOf(ALL))
  const { data } = await context.call(CHANGE, {
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

const fieldNames = providerForms.flatMap(({ fields }) => Object.keys(fields))

const ACCESS = [...fieldNames.map(optionOf), "secretStdin"]

/** What is not named stays as it is shown, but for the secrets, which are given or asked for anew. */
async function changedCredentials(context: Context, id: string, options: Access) {
  if (ACCESS.every((name) => options[name] === undefined)) return undefined
  const { data } = await context.call(ONE, { params: { kind: KIND, config_id: id } })
  const fields = Object.entries(formOf(data.provider)?.fields ?? {})
  const stored = data.credentials ?? {}
  for (const [field, form] of fields) {
    const is_hidden = form.secret && !form.asked_with && stored[field] !== undefined
    if (is_hidden && options[optionOf(field)] === undefined) {
      const word = placeholderOf(field, form)
      throw usage(`${flagOf(field)} is missing: the stored ${word} is hidden, so give it again`)
    }
  }
  const kept = fields.filter(([field, { secret }]) => !secret && stored[field] !== undefined)
  const known = kept.map(([field]) => [optionOf(field), String(stored[field])])
  return credentialsOf(context, data.provider, { ...Object.fromEntries(known), ...options })
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
