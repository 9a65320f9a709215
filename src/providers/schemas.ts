import { type Static, type TSchema, Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import { nameText, oneOf } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { anything, count, EXAMPLE_ID, flag, rarely, text, time, word } from "../lib/record-fields"
import { OWN_MECHANISM, ownFault } from "../lib/spf"
import { oncePer } from "../store/cached"
import { PROVIDER_KINDS, type ProviderDescriptor } from "./provider"

const Spf = t.String({ pattern: OWN_MECHANISM })

const pace = t.Number({ minimum: 0.01, maximum: 10_000 })
const spf = t.Array(Spf, {
  maxItems: 10,
  description: "SPF mechanisms that the records of sending domains need.",
})

/** What a project may say of a configuration, besides how to get in. Beside these two: what its provider declares. */
export interface ConfigSettings {
  max_per_second?: number
  spf?: string[]
  [declared: string]: unknown
}

/** What is absent stays; null forgets a setting. */
export type SettingsChange = { [Name in keyof ConfigSettings]?: ConfigSettings[Name] | null }

/** Every setting that any provider has, and which ones have it. The providers of a channel describe a common one alike. */
const settingFields = oncePer((table: readonly ProviderDescriptor[]) => {
  const declared = table.flatMap(({ settings = {} }) => Object.entries(settings))
  const own = declared.map(([name, { schema, about }]): [string, TSchema] => [
    name,
    { ...schema, description: `${about.replace(/^./, (letter) => letter.toUpperCase())}.` },
  ])
  return { max_per_second: t.Optional(pace), spf: t.Optional(spf), ...Object.fromEntries(own) }
})

const settingsOf = (table: readonly ProviderDescriptor[]) =>
  t.Unsafe<ConfigSettings>(t.Object(settingFields(table)))

const changesOf = (table: readonly ProviderDescriptor[]) => {
  const fields = Object.entries(settingFields(table)).map(([name, schema]) => [
    name,
    t.Optional(t.Union([schema, t.Null()])),
  ])
  return t.Unsafe<SettingsChange>(
    t.Object(Object.fromEntries(fields), {
      description: "Absent settings do not change; null removes a setting.",
    }),
  )
}

const credentialsOf = (table: readonly ProviderDescriptor[]) =>
  t.Record(t.String(), t.Unknown(), { description: fieldNames(table) })

/** `For smtp: host, port. For mailbox and direct: none.` */
function fieldNames(table: readonly ProviderDescriptor[]): string {
  const some = table.map(({ name, credentials }) => ({ name, fields: Object.keys(credentials) }))
  const full = some.filter(({ fields }) => fields.length > 0)
  const bare = some.filter(({ fields }) => fields.length === 0).map(({ name }) => name)
  const lines = full.map(({ name, fields }) => `For ${name}: ${fields.join(", ")}.`)
  return [...lines, ...(bare.length > 0 ? [`For ${bare.join(" and ")}: none.`] : [])].join(" ")
}

const priority = t.Integer({ minimum: 0, maximum: 10_000, default: 100 })

export const newConfig = (table: readonly ProviderDescriptor[]) =>
  t.Object({
    provider: nameText(50),
    credentials: t.Optional(credentialsOf(table)),
    name: t.Optional(nameText(100)),
    priority: t.Optional(priority),
    settings: t.Optional(settingsOf(table)),
  })

export const configPatch = (table: readonly ProviderDescriptor[]) =>
  t.Object({
    name: t.Optional(nameText(100)),
    priority: t.Optional(priority),
    enabled: t.Optional(t.Boolean()),
    credentials: t.Optional(credentialsOf(table)),
    settings: t.Optional(changesOf(table)),
  })

export const TestRequest = t.Object({ to: t.Optional(t.String()) })

export const Tested = t.Object(
  { ok: flag(true), duration_ms: count(180), detail: text("The login works.") },
  { title: "ProviderTest" },
)

export const kind = oneOf(...PROVIDER_KINDS)

export const providerConfig = oncePer((table: readonly ProviderDescriptor[]) =>
  t.Object(
    {
      id: text(
        EXAMPLE_ID,
        "ID of the configuration. `instance` means the instance's own provider.",
      ),
      kind,
      provider: text("smtp"),
      name: text("relay"),
      priority: count(100, "The provider with the lowest number is tried first."),
      enabled: flag(true),
      status: word(["active", "error"]),
      last_error: rarely(text("535 5.7.8 The login was refused.")),
      next_probe_at: rarely(time("Time at which one message tries a refused login again.")),
      credentials: anything(
        { host: "smtp.example.com", port: 587, username: "belfry", password: "…x9Qz" },
        "Secrets show only their last four characters.",
      ),
      settings: t.Unsafe<ConfigSettings>(
        t.Object(settingFields(table), { examples: [{ max_per_second: 14 }] }),
      ),
      callback_url: rarely(text("https://belfry.example.com/v1/callbacks/email/ses/cb_Zk3vX9")),
      created_at: time(),
      updated_at: time(),
    },
    { title: "ProviderConfig" },
  ),
)

export type ProviderConfig = Static<ReturnType<typeof providerConfig>>

export const configQuery = pageQuery({ kind: t.Optional(kind) })

export type NewConfig = Static<ReturnType<typeof newConfig>>
export type ConfigPatch = Static<ReturnType<typeof configPatch>>

/** The settings that a provider has. SPF is about mail alone. */
const settingNames = ({ channel, settings = {} }: ProviderDescriptor): string[] => [
  "max_per_second",
  ...(channel === "email" ? ["spf"] : []),
  ...Object.keys(settings),
]

/** Those of its settings that the provider has. */
export const knownSettings = <Given extends SettingsChange>(
  descriptor: ProviderDescriptor,
  given: Given,
): Given => {
  const known = settingNames(descriptor)
  return Object.fromEntries(Object.entries(given).filter(([name]) => known.includes(name))) as Given
}

/**
 * Only what is known of the settings is kept; of a change also null, which removes a setting. Throws
 * `validation_error` for those of another provider, and for what would spoil an SPF record.
 */
export function readSettings<Input extends SettingsChange>(
  descriptor: ProviderDescriptor,
  given: Input,
  table: readonly ProviderDescriptor[],
): Input {
  const problems = new Problems("settings.")
  const known = settingNames(descriptor)
  for (const name of Object.keys(given)) {
    if (known.includes(name) || !Object.hasOwn(settingFields(table), name)) continue
    const text = `${descriptor.name} has no setting ${name}. It has ${known.join(", ")}.`
    problems.add(name, "invalid", text)
  }
  given.spf?.forEach((one, at) => {
    const fault = ownFault(one)
    if (fault !== null) problems.add(`spf.${at}`, "invalid", `${fault}.`)
  })
  problems.throwIfAny()
  return knownSettings(descriptor, given)
}
