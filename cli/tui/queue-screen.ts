import type { Components } from "../../src/client/components"
import type { Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { ageText, number, until } from "./cells"
import { layoutOf } from "./layout"
import type { State } from "./state"
import { type MonitorColumn, tableLines } from "./table-lines"
import { told } from "./webhooks-screen"

type DomainWork = Components["OpenWork"]["by_domain"][number]
type StateWork = Components["OpenWork"]["by_state"][number]
type OpenWork = Components["OpenWork"]

type Row<Of> = Of & { id: string }

const stateColumns: MonitorColumn<Row<StateWork>>[] = [
  { title: "QUEUE", width: 0, share: 2, cell: ({ queue }) => queue },
  {
    title: "STATE",
    width: 10,
    cell: ({ state }) => state,
    brush: ({ state }) => (state === "running" ? "green" : "yellow"),
  },
  { title: "WHY", width: 0, share: 3, cell: ({ reason }) => reason ?? "" },
  { title: "COUNT", width: 9, right: true, cell: ({ count }) => number(count) },
  {
    title: "OLDEST",
    width: 7,
    right: true,
    cell: ({ oldest_seconds: age }) => (age === null ? "" : ageText(age)),
  },
  { title: "NEXT TRY", width: 9, cell: ({ next_attempt_at }, now) => until(next_attempt_at, now) },
]

/** Only where the server tells of leases. */
const leaseColumn: MonitorColumn<Row<StateWork>> = {
  title: "LEASE",
  width: 9,
  cell: ({ lease_until }, now) => until(lease_until, now),
}

const domainColumns: MonitorColumn<Row<DomainWork>>[] = [
  { title: "DOMAIN", width: 0, share: 2, cell: ({ domain }) => domain },
  { title: "WAITING", width: 9, right: true, cell: ({ waiting }) => number(waiting) },
  { title: "RUNNING", width: 9, right: true, cell: ({ running }) => number(running) },
  {
    title: "PAUSED UNTIL",
    width: 12,
    cell: ({ paused_until: at }) => (at ? clockTime(at).slice(0, 8) : ""),
  },
  { title: "WHY", width: 0, share: 3, cell: ({ reason }) => reason ?? "" },
]

/** What waits and why, and until when: first by state and reason, then by domain. */
export function queueLines(state: State, width: number, paint: Paint): string[] {
  const { work, problem, top } = state.queue
  const { height } = layoutOf(state)
  if (work === null) return told(problem ?? "loading…", width, height)
  if (isEmpty(work)) return told("nothing waits", width, height)
  const upper = Math.min(
    work.by_state.length + 1,
    work.by_domain.length > 0 ? Math.ceil(height / 2) : height,
  )
  const rest = { width, top: 0, selected: null, now: state.now, paint }
  const states = work.by_state.map((row, at) => ({ ...row, id: String(at) }))
  const tells_leases = states.some(({ lease_until }) => lease_until)
  const columns = tells_leases ? [...stateColumns, leaseColumn] : stateColumns
  const domains = work.by_domain.map((row) => ({ ...row, id: row.domain }))
  const above = tableLines({
    ...rest,
    columns,
    rows: states.slice(top),
    height: upper,
  })
  if (domains.length === 0) return filled(above, width, height)
  const skipped = Math.max(0, top - states.length + 1)
  const lower = height - upper - 1
  const below = tableLines({
    ...rest,
    columns: domainColumns,
    rows: domains.slice(skipped),
    height: lower,
  })
  return [...above, paint.dim("─".repeat(width)), ...below]
}

const isEmpty = ({ by_state, by_domain }: OpenWork) => by_state.length + by_domain.length === 0

function filled(lines: string[], width: number, height: number): string[] {
  const blank = Array.from({ length: Math.max(0, height - lines.length) }, () => " ".repeat(width))
  return [...lines, ...blank]
}

export interface Backlog {
  count: number
  oldest_seconds: number
}

/** Waiting and running work, for the line on top. Held work does not count. */
export function backlog({ by_state }: OpenWork): Backlog {
  const open = by_state.filter(({ state }) => state !== "held")
  const count = open.reduce((sum, row) => sum + row.count, 0)
  const oldest_seconds = Math.max(0, ...open.map(({ oldest_seconds: age }) => age ?? 0))
  return { count, oldest_seconds }
}

/** All of it in one line; empty before it was read. */
export function queueInfo({ queue }: State): string {
  if (queue.problem !== null) return queue.problem
  if (queue.work === null) return ""
  const { count, oldest_seconds } = backlog(queue.work)
  const oldest = count === 0 ? "" : `, the oldest for ${ageText(oldest_seconds)}`
  const held = queue.work.by_state.reduce(
    (sum, row) => sum + (row.state === "held" ? row.count : 0),
    0,
  )
  return `${number(count)} wait or run${oldest}${held > 0 ? `   ${number(held)} held` : ""}`
}
