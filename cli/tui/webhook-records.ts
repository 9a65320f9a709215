/** What the monitor reads of endpoints, deliveries and the queue (contract 30). */
export type Webhook = {
  id: string
  url: string
  events: string[]
  description?: string | null
  status: string
  disabled_reason: string | null
  consecutive_failures: number
  held_count: number
  last_success_at: string | null
  last_failure_at: string | null
}

export type Delivery = {
  id: string
  webhook_id: string
  event_id: string
  event_type: string
  status: string
  attempts: number
  max_attempts: number
  next_attempt_at: string | null
  last_response_status: number | null
  last_error: string | null
  latency_ms: number | null
  trigger: string
  created_at: string
}

export type Headers = Record<string, string | string[]>

export type DeliveryDetail = Delivery & {
  payload: unknown
  url: string
  request_headers: Headers | null
  response_headers: Headers | null
  last_response_body: string | null
  attempt_log: {
    attempt: number
    at: string
    response_status: number | null
    error: string | null
    latency_ms: number | null
  }[]
}

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
