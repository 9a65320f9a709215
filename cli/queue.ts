import type { Action } from "./context"
import { type Column, table } from "./table"
import { age } from "./time"

type StateLine = {
  queue: string
  state: string
  reason: string | null
  count: number
  oldest_seconds: number
  next_attempt_at: string | null
  lease_until: string | null
}

type DomainLine = {
  domain: string
  waiting: number
  running: number
  paused_until: string | null
  reason: string | null
}

type Queue = { by_state: StateLine[]; by_domain: DomainLine[] }

const states: Column<StateLine>[] = [
  { title: "QUEUE", cell: ({ queue }) => queue },
  { title: "STATE", cell: ({ state }) => state },
  { title: "COUNT", cell: ({ count }) => String(count) },
  { title: "OLDEST", cell: ({ oldest_seconds }) => `${oldest_seconds} s` },
  { title: "NEXT", cell: ({ next_attempt_at }) => age(next_attempt_at) },
  { title: "LEASE", cell: ({ lease_until }) => age(lease_until) },
  { title: "REASON", cell: ({ reason }) => reason ?? "", flexible: true },
]

const domains: Column<DomainLine>[] = [
  { title: "DOMAIN", cell: ({ domain }) => domain },
  { title: "WAITING", cell: ({ waiting }) => String(waiting) },
  { title: "RUNNING", cell: ({ running }) => String(running) },
  { title: "PAUSED", cell: ({ paused_until }) => age(paused_until) },
  { title: "REASON", cell: ({ reason }) => reason ?? "", flexible: true },
]

/** The project's open work, by state and by domain. */
export const list: Action<object> = async (context) => {
  const { data } = await context.client().get<Queue>("/v1/queue")
  const { paint, terminal } = context
  await context.output.record(data, () => {
    const by_state = data.by_state ?? []
    const by_domain = data.by_domain ?? []
    if (by_state.length === 0) return paint.dim("nothing waits")
    const parts = [table(by_state, states, terminal.width, paint)]
    if (by_domain.length > 0) parts.push(table(by_domain, domains, terminal.width, paint))
    return parts.join("\n\n")
  })
  return undefined
}
