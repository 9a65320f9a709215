import type { SQL } from "bun"
import { log } from "../core/log"

/**
 * Tables whose rows come and go with each message. The default waits until a fifth of a table is dead,
 * which for a million messages is a scan of hours in which the indexes grow.
 */
export const CHURNING = [
  "attempts",
  "counters",
  "events",
  "fan_out_contents",
  "idempotency",
  "inbound_contents",
  "inbound_emails",
  "inbound_files",
  "inbound_raws",
  "jobs",
  "mailbox_mails",
  "mailbox_recipients",
  "message_contents",
  "message_files",
  "message_raws",
  "message_tags",
  "message_tracking",
  "messages",
  "nodes",
  "provider_receipts",
  "quotas",
  "rate_windows",
  "reputation_hours",
  "request_log",
  "send_buckets",
  "tracking_links",
  "usage_days",
  "webhook_deliveries",
  "webhook_hours",
  "webhook_totals",
]

/** At one dead row in fifty, or a thousand in a small table; with half the pauses between pages. */
const OPTIONS = [
  "autovacuum_vacuum_scale_factor = 0.02",
  "autovacuum_vacuum_threshold = 1000",
  "autovacuum_vacuum_insert_scale_factor = 0.1",
  "autovacuum_analyze_scale_factor = 0.02",
  "autovacuum_vacuum_cost_delay = 1",
]

/** How long a table that somebody locks is waited for. The next start tries again. */
const PATIENCE = "SET LOCAL lock_timeout = '2s'"

/**
 * Tells Postgres to free deleted rows early, in the tables that churn. A table that an operator gave a
 * setting of autovacuum keeps it. Several nodes may do it at once. It never fails: the tables work
 * without it.
 */
export async function tuneAutovacuum(pool: SQL): Promise<void> {
  try {
    for (const name of await untuned(pool)) {
      await pool.begin(async (tx) => {
        await tx.unsafe(PATIENCE)
        await tx.unsafe(`ALTER TABLE "${name}" SET (${OPTIONS.join(", ")})`)
      })
    }
  } catch (error) {
    log.warn("the settings of autovacuum could not be made; the next start tries again", { error })
  }
}

async function untuned(pool: SQL): Promise<string[]> {
  const rows = (await pool`
    SELECT relname AS name FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
      AND coalesce(array_to_string(reloptions, ','), '') NOT LIKE '%autovacuum%'`) as {
    name: string
  }[]
  const found = new Set(rows.map(({ name }) => name))
  return CHURNING.filter((name) => found.has(name))
}
