import type { Explanation, Loaded } from "../../src/core/config"
import type { Action } from "../lib/context"
import { environment } from "../lib/environment"
import { profilesPath } from "../lib/profiles"
import { type Columns, fields, wide } from "../lib/table"
import { explained, type LocalOptions, localSettings } from "./settings"

const written = (value: unknown): string => {
  if (value === null) return "none"
  return typeof value === "string" ? value : JSON.stringify(value)
}

const columns: Columns<SettingRow> = {
  KEY: "key",
  VALUE: wide(({ value }) => written(value)),
  SOURCE: wide(({ source }) => source),
}

type SettingRow = Record<string, unknown> & { key: string; value: unknown; source: string }

export const show: Action<LocalOptions> = async (context, options) => {
  const rows: SettingRow[] = localSettings(context.flags, options)
    .all()
    .map((one) => ({ ...one }))
  await context.output.list(rows, columns)
  await context.output.next("belfry config explain data_dir")
}

export const explain: Action<object> = async (context, _, key = "") => {
  const found = lookUp(localSettings(context.flags, {}), key)
  await context.output.record({ ...found }, () =>
    [
      `${context.paint.bold(found.key)}  ${found.about}`,
      fields(
        [
          ["value", written(found.value)],
          ["source", found.source],
          ["default", written(found.default)],
        ],
        context.paint,
      ),
    ].join("\n"),
  )
}

/** The bare value, for a script: text as it is, anything else as JSON. */
export const get: Action<object> = async (context, _, key = "") => {
  const { value } = lookUp(localSettings(context.flags, {}), key)
  const json = context.flags.json !== undefined
  await context.output.raw(
    `${json ? JSON.stringify(value) : value === null ? "" : written(value)}\n`,
  )
}

function lookUp(loaded: Loaded, key: string): Explanation {
  try {
    return loaded.explain(key)
  } catch (error) {
    throw explained(error)
  }
}

export const path: Action<object> = async (context) => {
  const config = context.flags.config ?? (environment.BELFRY_CONFIG || null)
  const { data_dir } = localSettings(context.flags, {}).values
  const record = { config, profiles: profilesPath(environment), data_dir }
  await context.output.record(record, () =>
    fields(Object.entries({ ...record, config: config ?? "none" }), context.paint),
  )
}
