import type { Command } from "commander"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { settings_fields } from "../lib/fields"
import { LIMIT, optionWords, PERIOD, SINCE, UNTIL } from "../lib/flags"
import { limitOf, listUpTo } from "../lib/paging"
import type { AuditEntry, Used } from "../lib/records"
import { examples, run } from "../lib/run"
import { type Column, fields, shortId } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age, moment, month } from "../lib/time"

/** What was used, what was changed, and how the project is set. */
export function define(program: Command): void {
  const group = program
    .command("usage")
    .description("show the usage of a month, with its limits")
    .option(...PERIOD)
    .addHelpText("after", examples("usage", "usage --period 2026-11 --json"))
    .action(run(showUsage))

  group
    .command("mine")
    .description("show the total usage of all accounts that you own")
    .addHelpText("after", examples("usage mine"))
    .action(run(mine))

  group
    .command("reconcile")
    .description("count the usage of a month again, and show the difference")
    .option(...PERIOD)
    .addHelpText("after", examples("usage reconcile"))
    .action(run(reconcile))

  program
    .command("audit")
    .description("list the changes of the account, newest first")
    .option("--actor <id>", "show only changes by this person or key")
    .option("--action <name>", "show only this action, for example member.removed")
    .option("--target <type>", "show only changes of this kind of object, for example project")
    .option(...SINCE)
    .option(...UNTIL)
    .option(...LIMIT)
    .addHelpText("after", examples("audit --since 24h", "audit --action api_key.created"))
    .action(run(audit))

  defineSettings(
    program
      .command("settings")
      .description("show and change the settings of the project")
      .addHelpText("after", examples("settings get")),
  )
}

function defineSettings(settings: Command) {
  settings
    .command("get [name]")
    .description("show all settings, or one")
    .addHelpText("after", examples("settings get", "settings get sandbox"))
    .action(run(get))

  settings
    .command("set <name=value...>")
    .description("change settings; null restores the default")
    .addHelpText(
      "after",
      examples("settings set sandbox=true", "settings set default_from=me@example.test"),
    )
    .action(run(set))
}

const METRICS = ["email", "push", "sms", "in_app", "mau"] as const

type Usage = Record<(typeof METRICS)[number], Used> & {
  period: { start: string; end: string }
  api_requests: number
}

interface PeriodOptions {
  period?: string
}

export const showUsage: Action<PeriodOptions> = async (context, options) => {
  const period = month(options.period, "--period")
  const project_id = context.flags.project
  const { data } = await context.client().get<Usage>("/v1/usage", { period, project_id })
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

function shown(usage: Usage, paint: Paint): string {
  const month = usage.period.start.slice(0, "2026-11".length)
  const lines = METRICS.map((metric) => [metric, share(usage[metric])] as const)
  return fields([["period", month], ...lines, ["API requests", usage.api_requests]], paint)
}

function share({ used, limit, remaining }: Used): string {
  if (limit === null) return `${used}`
  return `${used} of ${limit}, ${remaining ?? 0} left`
}

type Aggregate = {
  user_id: string
  accounts: { account_id: string; plan: string; usage: Record<string, number> }[]
  totals: Record<string, number>
  over: string[]
}

export const mine: Action<object> = async (context) => {
  const { data } = await context.client().get<Aggregate>("/v1/usage/user-aggregate")
  await context.output.record(data, () => {
    const accounts = data.accounts.map(
      ({ account_id, plan, usage }) => [account_id, `${plan}, ${usage.email ?? 0} emails`] as const,
    )
    const over = data.over.length > 0 ? data.over.join(", ") : null
    const sums = Object.entries(data.totals)
    return fields([...accounts, ...sums, ["over the free limits", over]], context.paint)
  })
  return undefined
}

type Recount = { period: string; drift: unknown; projects_touched: number }

export const reconcile: Action<PeriodOptions> = async (context, options) => {
  const period = month(options.period, "--period")
  const body = period === undefined ? {} : { period }
  context.output.promises(["period", "drift", "projects_touched"])
  const { data } = await context.client().post<Recount>("/v1/usage/reconcile", body)
  await context.output.record(data, () =>
    fields(
      [
        ["period", data.period],
        ["drift", JSON.stringify(data.drift)],
        ["projects touched", data.projects_touched],
      ],
      context.paint,
    ),
  )
  return undefined
}

interface AuditOptions {
  actor?: string
  action?: string
  target?: string
  since?: string
  until?: string
  limit?: string
}

const columns: Column<AuditEntry>[] = [
  { title: "AGE", cell: ({ created_at }) => age(created_at) },
  { title: "ACTOR", cell: ({ actor }) => actor.name ?? actor.type, flexible: true },
  { title: "ACTION", cell: ({ action }) => action },
  {
    title: "TARGET",
    cell: ({ target }) => `${target.type} ${shortId(target.id ?? "")}`,
    flexible: true,
  },
  { title: "FROM", cell: ({ ip }) => ip ?? "" },
]

export const audit: Action<AuditOptions> = async (context, options) => {
  const { actor, action, target, since, until, limit } = options
  const query = {
    actor_id: actor,
    action,
    target_type: target,
    created_after: since && moment(since, "--since"),
    created_before: until && moment(until, "--until"),
  }
  const client = context.client()
  const found = await listUpTo<AuditEntry>(client, "/v1/audit-log", query, limitOf(limit))
  await context.output.list(found.rows, columns)
  if (found.more) {
    const words = optionWords({ ...options, limit: String(2 * limitOf(limit)) })
    await context.output.next(`belfry audit${words}`)
  }
  return undefined
}

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
