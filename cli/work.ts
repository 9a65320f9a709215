import type { Column } from "./table"
import { age } from "./time"

/** Of the open work of a project, one line a queue, state and reason. */
export type Waiting = {
  queue: string
  state: string
  reason: string | null
  count: number
  oldest_seconds: number | null
  next_attempt_at: string | null
  /** Until when whoever has it may keep it; servers that do not tell leave it out. */
  lease_until?: string | null
}

export type DomainWork = {
  domain: string
  waiting: number
  running: number
  paused_until: string | null
  reason: string | null
}

export type Work = { by_state: Waiting[]; by_domain: DomainWork[] }

export const domain_columns: Column<DomainWork>[] = [
  { title: "DOMAIN", cell: ({ domain }) => domain },
  { title: "WAITING", cell: ({ waiting }) => String(waiting) },
  { title: "RUNNING", cell: ({ running }) => String(running) },
  { title: "PAUSED", cell: ({ paused_until }) => age(paused_until) },
  { title: "REASON", cell: ({ reason }) => reason ?? "", flexible: true },
]
