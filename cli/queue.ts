import type { Action } from "./context"
import { type Column, table } from "./table"
import { age } from "./time"
import { domain_columns, type Waiting, type Work } from "./work"

const states: Column<Waiting>[] = [
  { title: "QUEUE", cell: ({ queue }) => queue },
  { title: "STATE", cell: ({ state }) => state },
  { title: "COUNT", cell: ({ count }) => String(count) },
  {
    title: "OLDEST",
    cell: ({ oldest_seconds: seconds }) => (seconds === null ? "" : `${seconds} s`),
  },
  { title: "NEXT", cell: ({ next_attempt_at }) => age(next_attempt_at) },
  { title: "LEASE", cell: ({ lease_until }) => age(lease_until ?? null) },
  { title: "REASON", cell: ({ reason }) => reason ?? "", flexible: true },
]

/** The project's open work, by state and by domain. */
export const list: Action<object> = async (context) => {
  const { data } = await context.client().get<Work>("/v1/queue")
  const { paint, terminal } = context
  await context.output.record(data, () => {
    const by_state = data.by_state ?? []
    const by_domain = data.by_domain ?? []
    if (by_state.length === 0) return paint.dim("nothing waits")
    const parts = [table(by_state, states, terminal.width, paint)]
    if (by_domain.length > 0) parts.push(table(by_domain, domain_columns, terminal.width, paint))
    return parts.join("\n\n")
  })
  return undefined
}
