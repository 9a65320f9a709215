/** What is odd about an endpoint that was taken all the same; in a list with its id. */
export type Warning = { webhook_id?: string; code: string; message: string }

/** What the API tells of endpoints and deliveries (contract 30). */
export type Webhook = {
  id: string
  url: string
  events: string[]
  description: string | null
  headers: Record<string, string>
  header_format: string
  retry_policy: { max_attempts: number; intervals: number[] }
  rate_limit: number | null
  filter: object | null
  transform: string | null
  status: string
  disabled_reason: string | null
  disabled_at: string | null
  secret_hint: string
  consecutive_failures: number
  held_count: number
  last_success_at: string | null
  last_failure_at: string | null
  created_at: string
  secret?: string
  warnings?: Warning[]
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
  completed_at: string | null
  created_at: string
}

/** A list where a name came more than once. */
export type Headers = Record<string, string | string[]>

export type DeliveryDetail = Delivery & {
  url: string | null
  payload: unknown
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

export type Job = { id: string; type: string; status: string; progress: { total: number } }
