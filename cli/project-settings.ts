import type { Action } from "./context"
import { usage } from "./failure"
import { settings_fields } from "./fields"
import { fields } from "./table"

type Settings = Record<string, unknown>

const PATH = "/v1/settings"

const told = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))

export const get: Action<object> = async (context, _, name = "") => {
  const { data } = await context.client().get<Settings>(PATH)
  if (name && !Object.hasOwn(data, name)) {
    throw usage(`there is no setting "${name}"`, `the settings are ${Object.keys(data).join(", ")}`)
  }
  const shown = name ? { [name]: data[name] } : data
  const lines = Object.entries(shown).map(([key, value]) => [key, told(value)] as const)
  await context.output.record(shown, () => fields(lines, context.paint))
  return undefined
}

/** `name=value`: JSON where it is some, else the text itself; `null` is the default again. */
export const set: Action<object> = async (context, _, ...pairs) => {
  const body = Object.fromEntries(pairs.map(pair))
  context.output.promises(settings_fields)
  const { data } = await context.client().patch<Settings>(PATH, body)
  const lines = Object.entries(data).map(([key, value]) => [key, told(value)] as const)
  await context.output.record(data, () => fields(lines, context.paint))
  return undefined
}

function pair(text: string): [string, unknown] {
  const at = text.indexOf("=")
  if (at < 1) throw usage(`"${text}" is not name=value`)
  const [name, value] = [text.slice(0, at), text.slice(at + 1)]
  try {
    return [name, JSON.parse(value)]
  } catch {
    return [name, value]
  }
}
