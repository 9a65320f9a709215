import { type Static, Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import { nameText, oneOf } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { anything, count, EXAMPLE_ID, flag, rarely, text, time, word } from "../lib/record-fields"
import { OWN_MECHANISM, ownFault } from "../lib/spf"
import { PROVIDER_KINDS, type ProviderDescriptor } from "./provider"

const Spf = t.String({ pattern: OWN_MECHANISM })

const pace = t.Number({ minimum: 0.01, maximum: 10_000 })
const spf = t.Array(Spf, {
  maxItems: 10,
  description: "SPF mechanisms that the records of sending domains need.",
})

const Settings = t.Object({ max_per_second: t.Optional(pace), spf: t.Optional(spf) })

const SettingsPatch = t.Object(
  {
    max_per_second: t.Optional(t.Union([pace, t.Null()])),
    spf: t.Optional(t.Union([spf, t.Null()])),
  },
  { description: "Absent settings do not change; null removes a setting." },
)

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
    settings: t.Optional(Settings),
  })

export const configPatch = (table: readonly ProviderDescriptor[]) =>
  t.Object({
    name: t.Optional(nameText(100)),
    priority: t.Optional(priority),
    enabled: t.Optional(t.Boolean()),
    credentials: t.Optional(credentialsOf(table)),
    settings: t.Optional(SettingsPatch),
  })

export const TestRequest = t.Object({ to: t.Optional(t.String()) })

export const Tested = t.Object(
  { ok: flag(true), duration_ms: count(180), detail: text("The login works.") },
  { title: "ProviderTest" },
)

export const kind = oneOf(...PROVIDER_KINDS)

export const ProviderConfig = t.Object(
  {
    id: text(EXAMPLE_ID, "ID of the configuration. `instance` means the instance's own provider."),
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
    settings: t.Object(
      { max_per_second: t.Optional(t.Number()), spf: t.Optional(t.Array(t.String())) },
      { examples: [{ max_per_second: 14 }] },
    ),
    callback_url: rarely(text("https://belfry.example.com/v1/callbacks/email/ses/cb_Zk3vX9")),
    created_at: time(),
    updated_at: time(),
  },
  { title: "ProviderConfig" },
)

export const configQuery = pageQuery({ kind: t.Optional(kind) })

/** What a project may say of a configuration, besides how to get in. */
export type ConfigSettings = Static<typeof Settings>
/** What is absent stays; null forgets a setting. */
export type SettingsChange = Static<typeof SettingsPatch>

export type NewConfig = Static<ReturnType<typeof newConfig>>
export type ConfigPatch = Static<ReturnType<typeof configPatch>>

/**
 * Only what is known of the settings is kept; of a change also null, which removes a setting. Throws
 * `validation_error` for what would spoil an SPF record.
 */
export function readSettings<Input extends SettingsChange>(given: Input): Input {
  const { max_per_second, spf } = given
  const problems = new Problems("settings.spf.")
  spf?.forEach((one, at) => {
    const fault = ownFault(one)
    if (fault !== null) problems.add(`${at}`, "invalid", `${fault}.`)
  })
  problems.throwIfAny()
  return {
    ...(max_per_second !== undefined && { max_per_second }),
    ...(spf !== undefined && { spf }),
  } as Input
}
