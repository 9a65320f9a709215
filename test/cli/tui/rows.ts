import type { MessageRow, RowUpdate } from "../../../cli/tui/message-rows"
import {
  type BoxFacts,
  initialState,
  type Load,
  type Opened,
  type State,
} from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import type { Components } from "../../../src/client/components"

type Webhook = Components["Webhook"]
type InboundEmail = Components["InboundEmail"]
type Reputation = Components["Reputation"]

export const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)

/** A UUIDv7 of that millisecond; `n` tells apart those of the same one. */
export function idAt(milliseconds: number, n = 0): string {
  const hex = milliseconds.toString(16).padStart(12, "0")
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${n.toString(16).padStart(12, "0")}`
}

export const row = (more: Partial<MessageRow> = {}): MessageRow => ({
  id: idAt(NOW),
  created_at: NOW,
  channel: "email",
  to: "ann@mailbox.test",
  subject: "Hi",
  status: "delivered",
  status_reason: "",
  attempts: 1,
  scheduled_at: null,
  changed_at: NOW,
  tags: [],
  template: [],
  is_new: false,
  ...more,
})

export const fact = (n: number, status: string, more: Partial<RowUpdate> = {}): RowUpdate => ({
  id: idAt(NOW + n, n),
  at: NOW + n,
  channel: "email",
  to: `u${n}@mailbox.test`,
  subject: `Number ${n}`,
  status,
  ...more,
})

/** That a record is read which was opened. */
export const readOf = (screen: keyof Opened, id: string, of: string | null = null): Load => ({
  ...{ do: "load_detail", screen, id, of, tab: "Timeline" },
})

/** A monitor that has heard of so many delivered messages, and has no more to load. */
export function monitorWith(count: number, columns = 80, lines = 24): State {
  const facts = Array.from({ length: count }, (_, n) => fact(n, "delivered"))
  const first = initialState(columns, lines, NOW, "acme/prod")
  const heard = applyNews(first, { is: "facts", facts }).state
  return applyNews(heard, { is: "older", facts: [], more: false, filter: "" }).state
}

/** A topic by its key. */
export const topicRow = (key: string, more: Partial<Components["Topic"]> = {}) => ({
  id: `topic-${key}`,
  key,
  name: `${key[0]?.toUpperCase()}${key.slice(1)}`,
  description: null,
  default: "on" as const,
  visibility: "private" as const,
  subscriber_count: 2,
  created_at: "2026-11-21T12:00:00.000Z",
  updated_at: "2026-11-21T12:00:00.000Z",
  ...more,
})

/** A publish to the topic `news` that is over. */
export const publishRow = (id: string, more: Partial<Components["Publish"]> = {}) => ({
  id,
  topic_key: "news",
  status: "completed" as const,
  status_reason: null,
  audience: 1250,
  channels: {
    email: {
      planned: 1250,
      sent: 1204,
      skipped: { no_address: 3, preference: 41, suppressed: 2, frequency_cap: 0, quota: 0 },
      failed: 4,
    },
  },
  scheduled_at: null,
  created_at: "2026-11-21T12:00:00.000Z",
  completed_at: "2026-11-21T12:01:00.000Z",
  ...more,
})

/** A subscriber by its external id. */
export const subscriberRow = (external_id = "user-1042"): Components["Subscriber"] => ({
  id: idAt(NOW),
  project_id: idAt(NOW),
  external_id,
  email: "ann@mailbox.test",
  phone: null,
  name: "Ann",
  avatar_url: null,
  locale: "de-AT",
  timezone: "Europe/Vienna",
  metadata: {},
  tags: ["beta"],
  status: "active",
  auth_user_id: null,
  devices: 0,
  unread: 0,
  last_seen_at: null,
  created_at: "2026-11-21T12:00:00.000Z",
  updated_at: "2026-11-21T12:00:00.000Z",
})

/** The consent of a subscriber to one kind of mail. */
export const consentRow = (more: Partial<Components["Consent"]> = {}): Components["Consent"] => ({
  id: idAt(NOW),
  subscriber_id: idAt(NOW),
  channel: "email",
  category: "newsletter",
  scope: { type: "category", key: "newsletter" },
  action: "granted",
  source: "api",
  proof: null,
  ip_hash: null,
  created_at: "2026-11-21T12:00:00.000Z",
  number: 1,
  prev_hash: null,
  hash: "00",
  ...more,
})

/** An endpoint that works. */
export const endpoint = (id: string, more: Partial<Webhook> = {}): Webhook => ({
  id,
  project_id: idAt(NOW),
  url: `https://${id}.test/hook`,
  events: ["email.*"],
  description: null,
  headers: {},
  header_format: "standard",
  retry_policy: { max_attempts: 6, intervals: [] },
  rate_limit: null,
  filter: null,
  transform: null,
  metadata: {},
  version: "2026-02-01",
  status: "active",
  enabled: true,
  disabled_reason: null,
  disabled_at: null,
  secret_hint: "…1234",
  consecutive_failures: 0,
  held_count: 0,
  last_triggered_at: null,
  last_success_at: null,
  last_failure_at: null,
  created_at: "2026-11-21T12:00:00.000Z",
  updated_at: "2026-11-21T12:00:00.000Z",
  ...more,
})

/** A received mail that was checked and answers nothing. */
export const inboundMail = (id: string, more: Partial<InboundEmail> = {}): InboundEmail => ({
  id,
  project_id: idAt(NOW),
  rfc_message_id: `<${id}@elsewhere.test>`,
  from: { email: "ann@elsewhere.test", name: "Ann" },
  to_email: "support@in.acme.test",
  to: [],
  cc: [],
  reply_to: [],
  envelope: { from: "ann@elsewhere.test", to: ["support@in.acme.test"] },
  domain: "in.acme.test",
  subject: "Where is it?",
  headers: {},
  attachments: [],
  in_reply_to: null,
  references: [],
  replied_to_message_id: null,
  reply_to_metadata: null,
  mailbox_hash: null,
  thread_id: id,
  kind: "new",
  auto_submitted: null,
  spf_verdict: "pass",
  dkim_verdict: "pass",
  dmarc_verdict: "pass",
  arc_verdict: "none",
  verified: true,
  spam: { score: 0, flagged: false, rules: [] },
  report: null,
  status: "processed",
  parse_error: false,
  truncated: false,
  size: 512,
  created_at: "2026-11-21T12:00:00.000Z",
  text_body: "Where is my order?",
  html_body: null,
  stripped_text: "Where is my order?",
  ...more,
})

const RATED = { project_id: "p1", sent: 400, delivered: 380, bounced: 20, complained: 1 }

/** A throttled account with a held tag, and with names that are hard to measure. */
export function troubled(more: Partial<Reputation> = {}): Reputation {
  const rates = { bounce_rate: 0.061, complaint_rate: 0.0004 }
  const held = { tag: "漢字 news", template_id: null, project_id: "p1", complaint_rate: 0.008 }
  return {
    status: "throttled",
    reason: "bounce_rate=6.1%;threshold=5%;window=7d",
    changed_at: new Date(NOW).toISOString(),
    rejected_share: 0.393,
    low_since: null,
    enforced: true,
    would_be: null,
    window_days: 7,
    window_start: null,
    ...{ sent: 4200, delivered: 3900, bounced: 256, complained: 2 },
    ...rates,
    hour_sent: 120,
    usual_hour: 300,
    thresholds: {
      throttled: {
        ...{ min_sent: 200, bounce_rate: 0.05, complaint_rate: 0.001 },
        ...{ hour_sent: 1000, hour_factor: 5, least_share: 0.25, most_share: 0.9 },
      },
      frozen: { min_sent: 500, bounce_rate: 0.1, complaint_rate: 0.005 },
      held: { min_sent: 50, complaint_rate: 0.005 },
      recovery: { below_share: 0.8, after_hours: 6 },
    },
    warning: null,
    forecast: { status: null, expected_at: null, ...rates, bounces_left: 182, complaints_left: 19 },
    held: [{ ...held, held_at: new Date(NOW - 7_200_000).toISOString(), waiting: 120 }],
    by_domain: [{ domain: "例え.test", ...RATED, ...rates }],
    by_tag: [{ tag: "漢字 news", ...RATED, ...rates }],
    by_template: [],
    history: [],
    ...more,
  }
}

/** A box with a short disk, a broken invariant, held work and two backups. */
export const boxFacts = (more: Partial<BoxFacts> = {}): BoxFacts => ({
  checks: [
    { name: "database", outcome: "pass", detail: "ok", fix: null },
    { name: "jobs", outcome: "fail", detail: "no progress for 60 s", fix: "Look into the log." },
    {
      name: "disk",
      outcome: "warn",
      detail: "900 MB free, the database has 840 MB, growing by 12 MB a day, enough for 9 days",
      fix: "Free space on the disk, or shorten `retention` of the projects.",
    },
    {
      name: "warning",
      outcome: "warn",
      detail: "Invariant I4 is broken in 2 places. 漢字 🎉. Run: belfry db check",
      fix: null,
    },
  ],
  backups: [
    {
      id: idAt(NOW),
      size: 73_400_320,
      verified: true,
      missing: 2,
      created_at: "2026-11-21T09:00:00.000Z",
    },
    {
      id: idAt(NOW - 1),
      size: 12_288,
      verified: false,
      created_at: "2026-11-20T09:00:00.000Z",
    },
  ],
  held: {
    queue: "held_after_restore",
    depth: 1204,
    oldest_seconds: 3 * 3600,
    running: 0,
    failed_24h: 0,
    paused: true,
  },
  ai: {
    period: { start: "2026-11-01T00:00:00.000Z", end: "2026-12-01T00:00:00.000Z" },
    ...{ spend_usd: 0.0031, budget_usd: 20, remaining_usd: 19.9969, projected_usd: 0.0044 },
    by_action: [
      { action: "draft_template", count: 3, limit: 25, spend_usd: 0.0031 },
      { action: "analyze_broadcast", count: 0, limit: -1, spend_usd: 0 },
    ],
    by_tier: [{ tier: "standard", count: 3, spend_usd: 0.0031 }],
  },
  server: { data_dir: "/srv/restored box", run_id: idAt(NOW) },
  ...more,
})

export const endUser = (
  id: string,
  more: Partial<Components["User"]> = {},
): Components["User"] => ({
  id,
  application_id: idAt(NOW, 70),
  environment: "live",
  email: null,
  email_verified: false,
  name: null,
  avatar_url: null,
  phone_number: null,
  phone_verified: false,
  status: "active",
  mfa_enabled: false,
  mfa_methods: [],
  is_anonymous: false,
  anonymous_device_id: null,
  identities: [],
  locale: null,
  metadata: {},
  app_metadata: {},
  subscriber_id: null,
  first_activity_at: null,
  last_login_at: null,
  created_at: new Date(NOW).toISOString(),
  updated_at: new Date(NOW).toISOString(),
  ...more,
})

export const userSession = (
  id: string,
  more: Partial<Components["UserSession"]> = {},
): Components["UserSession"] => ({
  id,
  current: false,
  device: null,
  ip: "192.0.2.7",
  organization_id: idAt(NOW, 71),
  created_at: new Date(NOW).toISOString(),
  last_used_at: new Date(NOW).toISOString(),
  expires_at: new Date(NOW + 86_400_000).toISOString(),
  ...more,
})
