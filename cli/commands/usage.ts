import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import { fieldsOf } from "../lib/client"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { METRICS, PERIOD } from "../lib/flags"
import { groupOf, row } from "../lib/resource"
import { examples, run } from "../lib/run"
import { ago, fields, shortId, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { month } from "../lib/time"

export const usageRows = [
  row("mine", "GET /v1/usage/user-aggregate", {
    about: "show the total usage of all accounts that you own",
    shown: ({ accounts, totals, over }, paint) => {
      const each = accounts.map(
        ({ account_id, plan, usage: { email } }) =>
          [account_id, `${plan}, ${email ?? 0} emails`] as const,
      )
      const limits = over.length > 0 ? over.join(", ") : null
      return fields([...each, ...Object.entries(totals), ["over the free limits", limits]], paint)
    },
  }),
  row("reconcile", "POST /v1/usage/reconcile", {
    about: "count the usage of a month again, correct it and show the difference",
    shown: ({ period, drift, projects_touched }, paint) => {
      const difference = ["drift", JSON.stringify(drift)] as const
      return fields([["period", period], difference, ["projects touched", projects_touched]], paint)
    },
  }),
]

export const auditRow = row("audit", "GET /v1/audit-log", {
  example: ["--since 24h", "--action api_key.created"],
  flags: {
    actor_id: "show only changes by this person or key",
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

/** What was used, and how the project is set. */
export function define(program: Command): void {
  groupOf(program, "usage")
    .option(...PERIOD)
    .action(run(showUsage))

  const settings = program
    .command("settings")
    .description("show and change the settings of the project")
    .addHelpText("after", examples("settings get"))
  settings
    .command("get [name]")
    .description("show all settings, or one")
    .addHelpText("after", examples("settings get", "settings get sandbox"))
    .action(run(getSettings))
  settings
    .command("set <name=value...>")
    .description("change settings; null restores the default")
    .addHelpText(
      "after",
      examples(
        "settings set sandbox=true",
        "settings set default_from=me@example.test",
        "settings set inbound.mode=routes",
      ),
    )
    .action(run(setSettings))
}

const showUsage: Action<{ period?: string }> = async (context, options) => {
  const { project: project_id } = context.flags
  const period = month(options.period, "--period")
  const query = { ...(period && { period }), ...(project_id && { project_id }) }
  const { data } = await context.call("GET /v1/usage", { query })
  await context.output.record(data, () => {
    const lines = METRICS.map((metric) => [metric, share(data[metric])] as const)
    const shown = data.period.start.slice(0, "2026-11".length)
    const stored = ["stored MB", data.stored_mb ? share(data.stored_mb) : null] as const
    const requests = ["API requests", data.api_requests] as const
    return fields([["period", shown], ...lines, stored, requests], context.paint)
  })
}

type Share = Pick<Components["UsageShare"], "used" | "limit" | "remaining">

function share({ used, limit, remaining }: Share): string {
  if (limit === null) return `${used}`
  return `${used} of ${limit}, ${remaining ?? 0} left`
}

const settingLines = (settings: object, paint: Paint) =>
  fields(
    Object.entries(settings).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
    paint,
  )

const getSettings: Action<object> = async (context, _, name = "") => {
  const data: Record<string, unknown> = (await context.call("GET /v1/settings")).data
  if (name && !Object.hasOwn(data, name)) {
    throw usage(`there is no setting "${name}"`, `the settings are ${Object.keys(data).join(", ")}`)
  }
  const shown = name ? { [name]: data[name] } : data
  await context.output.record(shown, () => settingLines(shown, context.paint))
}

/**
 * `name=value`: JSON where it is some, else the text itself; `null` is the default again. A dot leads
 * into a setting that is an object: `inbound.mode=routes`.
 */
const setSettings: Action<object> = async (context, _, ...pairs) => {
  const body: Record<string, unknown> = {}
  for (const [name, value] of pairs.map(pair)) {
    const [first = "", ...rest] = name.split(".")
    const inner = rest.reduceRight((whole: unknown, part) => ({ [part]: whole }), value)
    const before = body[first]
    const both = rest.length > 0 && typeof before === "object" && before !== null
    body[first] = both ? { ...before, ...(inner as object) } : inner
  }
  context.output.promises(fieldsOf("PATCH /v1/settings"))
  const { data } = await context.call("PATCH /v1/settings", { body })
  await context.output.record(data, () => settingLines(data, context.paint))
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
