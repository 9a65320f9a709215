import type { Components } from "../../src/client/components"
import type { ProviderFormField } from "../../src/client/provider-form"
import { providerForms } from "../../src/client/provider-forms"
import type { Client } from "../lib/client"
import type { Context } from "../lib/context"
import { usage } from "../lib/errors"
import { camel, flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { readText } from "../lib/input"
import { listUpTo } from "../lib/paging"
import { askHidden } from "../lib/prompts"
import { deletes, type PlainFlags, row } from "../lib/resource"
import { ago, coloured, idColumn, wide } from "../lib/table"

type ProviderConfig = Components["ProviderConfig"]

const ONE = "GET /v1/providers/{kind}/config/{config_id}"
const KIND = "email_provider"

/** No provider that is gone has a kind: then the server says so. */
const params = {
  kind: async (client: Client, [id = ""]: readonly string[]) => {
    const { rows } = await listUpTo(client, "GET /v1/providers", MOST)
    return rows.find((one) => one.id === id)?.kind ?? KIND
  },
}

/** More than a project may have. */
const MOST = 100

const statusOf = ({ enabled, status }: ProviderConfig) => (enabled ? status : "off")

const providerValues = (config: ProviderConfig) => ({
  status: statusOf(config),
  ...{ enabled: null, kind: null, settings: null },
  per_second: config.settings?.max_per_second,
  spf: config.settings?.spf?.join(" "),
  ...declaredValues(config.settings),
})

const declaredValues = ({
  max_per_second: _,
  spf: __,
  ...declared
}: ProviderConfig["settings"] = {}) =>
  Object.fromEntries(
    Object.entries(declared).map(([name, value]) => [
      name,
      typeof value === "object" ? JSON.stringify(value) : value,
    ]),
  )

const names = providerForms.map(({ name }) => name)

const listOf = (words: string[]) => `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`

interface ProviderFlag {
  field: string
  form: ProviderFormField
  words: OptionWords
}

/** A flag for each field of any provider; one that several have is one flag, and what they mean alike is said once. */
function flagsOf(part: "fields" | "settings", forms = providerForms): ProviderFlag[] {
  const all = forms.flatMap(({ name, [part]: fields = {} }) =>
    Object.entries(fields).map(([field, form]) => ({ name, field, form })),
  )
  const by_flag = Map.groupBy(all, ({ name, field }) => flagOf(name, field))
  return [...by_flag].map(([option, some]) => {
    const [{ field, form }] = some as [(typeof some)[number]]
    const meanings = [...Map.groupBy(some, (one) => aboutOf(one.form))]
    const about = meanings.map(
      ([words, same]) => `${same.map(({ name }) => name).join(", ")}: ${words}`,
    )
    return { field, form, words: [`${option} <${placeholderOf(field, form)}>`, about.join("; ")] }
  })
}

/** The flags of the credentials of some providers. */
export function accessOptions(forms = providerForms): OptionWords[] {
  const flags = flagsOf("fields", forms).map(({ words }) => words)
  if (!forms.some(({ fields }) => Object.values(fields).some((field) => field.asked_with)))
    return flags
  const stdin = "read the password or secret from stdin, one a line (default: ask for it)"
  return [...flags, ["--secret-stdin", stdin]]
}

/** Flags that every command has. */
const TAKEN = ["url", "api_key"]

const nameOf = (provider: string, field: string) =>
  (TAKEN.includes(field) ? `${provider}_${field}` : field).replaceAll("_", "-")

const flagOf = (provider: string, field: string) => `--${nameOf(provider, field)}`

const placeholderOf = (field: string, { value, type, asked_with }: ProviderFormField) =>
  asked_with ? "secret" : type === "integer" ? "number" : (value ?? field.split("_").at(-1))

const aboutOf = ({ about, fallback, asked_with }: ProviderFormField) =>
  `${about}${asked_with ? "; safer with --secret-stdin" : ""}${fallback === undefined ? "" : ` (default: ${fallback})`}`

/** Values of credentials, by the names of their flags. */
type Access = PlainOptions

const optionOf = (provider: string, field: string) => camel(nameOf(provider, field))

const formOf = (provider: string) => providerForms.find(({ name }) => name === provider)

const kindOf = (provider: string) => `${formOf(provider)?.channel}_provider` as const

/** What these flags say, and what is asked for. Throws a usage error for a flag that the provider does not have. */
export async function credentialsOf(context: Context, provider: string, options: Access) {
  const credentials: Record<string, unknown> = {}
  const { channel, fields: known = {} } = formOf(provider) ?? {}
  const fields = Object.entries(known)
  const own = fields.map(([field]) => optionOf(provider, field))
  for (const [name, option] of ACCESS) {
    if (options[name] !== undefined && !own.includes(name))
      throw usage(`${option} is not a flag of ${provider}`)
  }
  let lines: string[] | undefined
  for (const [field, form] of fields) {
    const [text, option] = [options[optionOf(provider, field)], flagOf(provider, field)]
    if (typeof text === "string") {
      // Keys of push services are files, which their consoles give.
      const is_file = channel === "push" && text.startsWith("@")
      const given = is_file ? await readText(text.slice(1), option) : text
      credentials[field] = valueFrom(given, option, form)
    } else if (form.asked_with && options[optionOf(provider, form.asked_with)] !== undefined) {
      const question = form.about.replace(/^./, (letter) => letter.toUpperCase())
      if (options.secretStdin) lines ??= (await Bun.stdin.text()).split(/\r?\n/)
      credentials[field] = lines ? secretIn(lines) : await askSecret(context, question)
    }
  }
  return credentials
}

function valueFrom(text: string, option: string, { type }: ProviderFormField): unknown {
  if (type === "integer") return numberOf(text, option)
  if (type === "array") return text.split(",")
  if (type !== "object") return text
  try {
    return JSON.parse(text)
  } catch {
    throw usage(`${option}: the value is not a JSON object`)
  }
}

const askSecret = (context: Context, question: string) =>
  askHidden(context, question, "give it with --secret-stdin")

/** Each secret has a line of its own, in the order of the help. */
function secretIn(lines: string[]): string {
  const line = lines.shift()
  if (!line) throw usage("--secret-stdin: stdin needs one line for each secret")
  return line
}

function numberOf(text: string, option: string): number {
  const value = Number(text)
  if (text.trim() === "" || !Number.isFinite(value))
    throw usage(`${option}: "${text}" is not a number`)
  return value
}

/** `none` forgets a setting where the help says so. */
const settingFlags = (pace: string, none: string): PlainFlags => ({
  "settings.max_per_second": flag(["--max-per-second <number>", pace], (text, option) =>
    none && text === "none" ? null : numberOf(text, option),
  ),
  "settings.spf": flag(
    ["--spf <mechanism>", `mechanism that SPF records need${none}; may be repeated`, "several"],
    (given: string[]) => (none && given.join() === "none" ? null : given),
  ),
  ...Object.fromEntries(
    flagsOf("settings").map(({ field, form, words: [words, about] }) => [
      `settings.${field}`,
      flag([words, `${about}${none}`], (text, option) =>
        none && text === "none" ? null : valueFrom(text, option, form),
      ),
    ]),
  ),
})

/** The flags of all credentials, by the names of their values. */
const ACCESS = new Map(
  providerForms.flatMap(({ name, fields }) =>
    Object.keys(fields).map((field) => [optionOf(name, field), flagOf(name, field)] as const),
  ),
)

/** What is not named stays as it is shown, but for the secrets, which are given or asked for anew. */
async function changedCredentials(context: Context, id: string, options: Access) {
  if ([...ACCESS.keys(), "secretStdin"].every((name) => options[name] === undefined)) return {}
  const kind = await params.kind(context.client(), [id])
  const { data } = await context.call(ONE, { params: { kind, config_id: id } })
  const { provider } = data
  const fields = Object.entries(formOf(provider)?.fields ?? {})
  const stored = data.credentials ?? {}
  for (const [field, form] of fields) {
    const is_hidden = form.secret && !form.asked_with && stored[field] !== undefined
    if (is_hidden && options[optionOf(provider, field)] === undefined) {
      const word = placeholderOf(field, form)
      throw usage(
        `${flagOf(provider, field)} is missing: the stored ${word} is hidden, so give it again`,
      )
    }
  }
  const kept = fields.filter(([field, { secret }]) => !secret && stored[field] !== undefined)
  const typed = (value: unknown) =>
    typeof value === "object" ? JSON.stringify(value) : String(value)
  const known = kept.map(([field]) => [optionOf(provider, field), typed(stored[field])])
  const access = { ...Object.fromEntries(known), ...options }
  return { credentials: await credentialsOf(context, provider, access) }
}

export const providerRows = [
  row("list", "GET /v1/providers", {
    about: "list the providers of the project, newest first",
    example: "--kind email_provider",
    columns: {
      ID: idColumn("provider"),
      PROVIDER: "provider",
      NAME: wide(({ name }) => name),
      ORDER: "priority",
      STATUS: coloured(statusOf, { active: "green" }, "red"),
      "LAST ERROR": wide(({ last_error }) => last_error),
      "NEXT TRY": ago(({ next_probe_at }) => next_probe_at),
      AGE: ago(({ created_at }) => created_at),
    },
  }),
  row("get <id>", ONE, {
    params,
    about: "show one provider, and the last 4 characters of its secrets",
    values: providerValues,
  }),
  row("test <id>", "POST /v1/providers/{kind}/config/{config_id}/test", {
    about:
      "log in at a provider, or send a message with --to; after a success Belfry sends what waits",
    params,
    example: "--to ann@example.com",
    note: "`providers test instance` tests the provider of the instance itself.",
    flags: {
      to: "send a test mail to this address, from the default_from of the project, or a text to this number",
    },
    done: ({ detail, duration_ms }) => `${detail} (${duration_ms} ms)`,
  }),
  row("delete <id>", "DELETE /v1/providers/{kind}/config/{config_id}", {
    params,
    ...deletes(
      (id) =>
        `Provider ${id} and its credentials will be deleted. The next provider delivers the messages.`,
    ),
  }),
  row("set <provider>", "POST /v1/providers/{kind}/config", {
    about: `configure ${listOf(names)}; an existing name is replaced`,
    word: "",
    example: providerForms.flatMap(({ name, example }) => (example ? `${name} ${example}` : [])),
    refuse: (_, [provider = ""]) =>
      formOf(provider) ? undefined : `there is no provider ${provider}: give ${listOf(names)}`,
    id: async (_, provider) => kindOf(provider),
    flags: {
      ...{ provider: false, enabled: false, credentials: false },
      name: "name (default: the provider, for example smtp)",
      priority: "order of use: the lowest number is first (default: 100)",
      ...settingFlags("maximum messages per second (default: no limit)", ""),
    },
    options: accessOptions(),
    input: async (options, [provider = ""], context) => ({
      provider,
      credentials: await credentialsOf(context, provider, options),
    }),
    done: ({ provider, name, id }) => `${provider} ${name} (${id})`,
    after: async ({ output }, { data: { provider, callback_url, id } }) => {
      const { about = provider } = formOf(provider) ?? {}
      const callback = `send the notifications of ${about} to ${callback_url}`
      await output.next(callback_url ? callback : `belfry providers test ${id}`)
    },
  }),
  row("update <id>", "PATCH /v1/providers/{kind}/config/{config_id}", {
    params,
    about: "change the settings or credentials of a provider, or switch it on or off",
    example: ["--priority 10", "--secret-stdin < secret"],
    flags: {
      name: "new name",
      priority: "order of use: the lowest number is first",
      enabled: "switch the provider on or off",
      ...settingFlags("maximum messages per second, or none for no limit", ", or none"),
    },
    options: accessOptions(),
    input: (options, [id = ""], context) => changedCredentials(context, id, options),
    values: providerValues,
  }),
]
