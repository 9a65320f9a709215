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
