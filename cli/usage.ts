import type { Action } from "./context"
import { optionWords } from "./hint"
import { limitOf, listUpTo } from "./paging"
import type { AuditEntry, Used } from "./records"
import { type Column, fields, shortId } from "./table"
import type { Paint } from "./terminal"
import { age, moment, month } from "./time"

const METRICS = ["email", "push", "sms", "in_app", "mau"] as const

type Usage = Record<(typeof METRICS)[number], Used> & {
  period: { start: string; end: string }
  api_requests: number
}

interface PeriodOptions {
  period?: string
}

export const usage: Action<PeriodOptions> = async (context, options) => {
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
