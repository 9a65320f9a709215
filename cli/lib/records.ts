import type { Column } from "./table"
import { age } from "./time"

/** The records of the wire that the command line looks into. Everything else passes unread. */
export type Mailbox = { email: string; name: string | null }

export type EmailRef = { id: string; status: string; rfc_message_id: string | null }

export type Email = {
  id: string
  status: string
  status_reason: string | null
  from: Mailbox | null
  to: Mailbox
  subject: string | null
  rfc_message_id: string | null
  provider: string | null
  attempts: number
  next_attempt_at: string | null
  error: { code: string; message: string; smtp_code: number | null } | null
  timeline?: TimelineEntry[]
  attachments?: { id: string; filename: string; size: number }[]
  created_at: string
  sent_at: string | null
  delivered_at: string | null
}

export type TimelineEntry = {
  type: string
  timestamp: string
  recipient_email: string | null
  detail: Record<string, unknown> | null
}

export type EmailEvent = TimelineEntry & {
  id: string
  bounce_type: string | null
  bounce_subtype: string | null
}

export type EmailEvents = { email_id: string; status: string; events: EmailEvent[] }

export type Attempt = {
  attempt: number
  provider: string
  started_at: string
  duration_ms: number
  outcome: string
  mx: string | null
  tls: string | null
  smtp_code: number | null
  enhanced_code: string | null
  response: string | null
}

export type BatchResult = {
  id: string
  total: number
  succeeded: number
  failed: number
  results: BatchItem[]
}

export type BatchItem = {
  index: number
  id?: string
  status?: string
  error?: { code: string; message: string }
}

export type Content = {
  subject: string | null
  html: string | null
  text: string | null
  headers: Record<string, string>
}

export type Key = {
  id: string
  name: string
  prefix: string
  last4: string
  scopes: string[]
  status: string
  ip_addresses: string[]
  expires_at: string | null
  last_used_at: string | null
  created_at: string
  key?: string
}

export type MailSummary = {
  id: string
  email_id: string | null
  from: Mailbox | string | null
  to: Mailbox | string | null
  subject: string | null
  created_at: string
}

export type Mail = MailSummary & {
  html: string | null
  text: string | null
  attachments: { filename: string | null; size?: number }[]
}

/** What happened, as webhooks and the event feed tell it. */
export type Envelope = {
  id: string
  type: string
  api_version: string
  created_at: string
  data: Record<string, unknown>
}

/** `Ann <a@b.c>` of either form in which an address may arrive. */
export function address(value: Mailbox | string | null | undefined): string {
  if (value === null || value === undefined) return ""
  if (typeof value === "string") return value
  return value.name ? `${value.name} <${value.email}>` : value.email
}

export type Account = {
  id: string
  name: string
  slug: string
  plan: string
  status: string
  role?: string
  settings: Record<string, boolean>
  created_at: string
}

export type Project = {
  id: string
  name: string
  slug: string
  status: string
  sandbox: boolean
  created_at: string
}

export type Member = {
  user_id: string
  email: string
  name: string | null
  role: string
  inherited?: boolean
  mfa_enabled?: boolean
  joined_at?: string
  added_at?: string
  last_active_at?: string | null
}

export type Invitation = {
  id: string
  email: string
  role: string
  status: string
  expires_at: string
}

export type Used = { used: number; limit: number | null; remaining: number | null }

export type AuditEntry = {
  id: string
  actor: { type: string; id: string | null; name: string | null }
  action: string
  target: { type: string; id: string | null }
  ip: string | null
  created_at: string
}

export type User = {
  id: string
  email: string
  name: string | null
  locale: string | null
  timezone: string | null
  mfa_enabled: boolean
  operator: boolean
  created_at: string
  last_login_at: string | null
}

export type SessionRecord = {
  id: string
  current: boolean
  ip: string | null
  user_agent: string | null
  client_name: string | null
  created_at: string
  last_used_at: string
  expires_at: string
}

export type ProviderConfig = {
  id: string
  kind: string
  provider: string
  name: string
  priority: number
  enabled: boolean
  status: string
  last_error: string | null
  /** While it refuses the login; servers that do not tell leave it out. */
  next_probe_at?: string | null
  credentials?: Record<string, unknown>
  settings?: { max_per_second?: number; spf?: string[] }
  callback_url: string | null
  created_at: string
  updated_at: string
}

export type Deleted = { id: string; deleted: boolean }

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
