import type { Components } from "../../src/client/components"
import { fieldsOf } from "../lib/client"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { METRICS } from "../lib/flags"
import { jsonOrText, placed } from "../lib/input"
import { own, row } from "../lib/resource"
import { ago, fields, shortId, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"

type Share = Pick<Components["UsageShare"], "used" | "limit" | "remaining">

function share({ used, limit, remaining }: Share): string {
  if (limit === null) return `${used}`
  return `${used} of ${limit}, ${remaining ?? 0} left`
}

export const usageRows = [
  row("", "GET /v1/usage", {
    flags: { project_id: false },
    input: (_, __, { flags: { project } }) => (project ? { project_id: project } : {}),
    values: ({ period, stored_mb, ...used }) => ({
      period: period.start.slice(0, "2026-11".length),
      ...Object.fromEntries(METRICS.map((metric) => [metric, share(used[metric])])),
      stored_mb: stored_mb ? share(stored_mb) : null,
    }),
  }),
  row("mine", "GET /v1/usage/user-aggregate", {
    about: "show the total usage of all accounts that you own",
    values: ({ accounts, totals, over }) => ({
      accounts: null,
      totals: null,
      over: null,
      ...Object.fromEntries(
        accounts.map(({ account_id, plan, usage: { email } }) => [
          account_id,
          `${plan}, ${email ?? 0} emails`,
        ]),
      ),
      ...totals,
      over_the_free_limits: over,
    }),
  }),
  row("reconcile", "POST /v1/usage/reconcile", {
    about: "count the usage of a month again, correct it and show the difference",
    values: ({ drift }) => ({ drift: JSON.stringify(drift) }),
  }),
]

export const auditRow = row("audit", "GET /v1/audit-log", {
  example: ["--since 24h", "--action api_key.created"],
  flags: {
    action: "show only this action, for example member.removed",
    target_type: "show only changes of this kind of object, for example project",
  },
  columns: {
    AGE: ago(({ created_at }) => created_at),
    ACTOR: wide(({ actor }) => actor.name ?? actor.type),
    ACTION: "action",
    TARGET: wide(({ target }) => `${target.type} ${shortId(target.id ?? "")}`),
    FROM: "ip",
  },
})

export const settingLines = (settings: object, paint: Paint) =>
  fields(
    Object.entries(settings).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
    paint,
  )

/** The settings that `name=value` words change. */
export const settingsIn = (words: readonly string[]) => words.reduce(withSetting, {})

const setSettings: Action<object> = async (context, _, ...words) => {
  const body = settingsIn(words)
  context.output.promises(fieldsOf("PATCH /v1/settings"))
  const { data } = await context.call("PATCH /v1/settings", { body })
  await context.output.record(data, () => settingLines(data, context.paint))
}

/** `name=value`: JSON where it is some, else the text itself. A dot leads into a setting that is an object. */
function withSetting(body: Record<string, unknown>, text: string): Record<string, unknown> {
  const at = text.indexOf("=")
  if (at < 1) throw usage(`"${text}" is not name=value`)
  return placed(body, text.slice(0, at).split("."), jsonOrText(text.slice(at + 1)))
}

export const settingRows = [
  row("get [name]", "GET /v1/settings", {
    about: "show all settings, or one",
    example: ["", "sandbox"],
    print({ output, paint }, { data }, _, [name]) {
      if (name !== undefined && !Object.hasOwn(data, name)) {
        const known = `the settings are ${Object.keys(data).join(", ")}`
        throw usage(`there is no setting "${name}"`, known)
      }
      const shown = name === undefined ? data : { [name]: data[name as keyof typeof data] }
      return output.record(shown, () => settingLines(shown, paint))
    },
  }),
  own("set <name=value...>", setSettings, {
    about: "change settings; null restores the default",
    word: "sandbox=true",
    example: ["", "default_from=me@example.test inbound.mode=routes"],
  }),
]
