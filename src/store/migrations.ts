// Written by `bun run generate`; do not edit.
import sqlite0 from "../../migrations/sqlite/0000_initial_schema.sql" with { type: "text" }
import sqlite1 from "../../migrations/sqlite/0001_inbound_mail.sql" with { type: "text" }
import sqlite2 from "../../migrations/sqlite/0002_message_schedule_and_template.sql" with { type: "text" }
import sqlite3 from "../../migrations/sqlite/0003_suppressions.sql" with { type: "text" }
import sqlite4 from "../../migrations/sqlite/0004_unsubscribe_links_and_consents.sql" with { type: "text" }
import sqlite5 from "../../migrations/sqlite/0005_templates.sql" with { type: "text" }
import sqlite6 from "../../migrations/sqlite/0006_inbound_raws.sql" with { type: "text" }
import sqlite7 from "../../migrations/sqlite/0007_reputation.sql" with { type: "text" }
import sqlite8 from "../../migrations/sqlite/0008_message_tracking.sql" with { type: "text" }
import sqlite9 from "../../migrations/sqlite/0009_message_files.sql" with { type: "text" }
import sqlite10 from "../../migrations/sqlite/0010_audience.sql" with { type: "text" }
import sqlite11 from "../../migrations/sqlite/0011_signing_keys.sql" with { type: "text" }
import sqlite12 from "../../migrations/sqlite/0012_search_of_subscribers.sql" with { type: "text" }
import sqlite13 from "../../migrations/sqlite/0013_merged_subscribers.sql" with { type: "text" }
import sqlite14 from "../../migrations/sqlite/0014_held_deliveries.sql" with { type: "text" }
import sqlite15 from "../../migrations/sqlite/0015_mailbox_reading.sql" with { type: "text" }
import sqlite16 from "../../migrations/sqlite/0016_postings_of_subscribers.sql" with { type: "text" }
import sqlite17 from "../../migrations/sqlite/0017_consent_heads.sql" with { type: "text" }
import sqlite18 from "../../migrations/sqlite/0018_webhook_totals.sql" with { type: "text" }
import sqlite19 from "../../migrations/sqlite/0019_suppression_diagnostics.sql" with { type: "text" }
import sqlite20 from "../../migrations/sqlite/0020_request_log_by_request.sql" with { type: "text" }
import sqlite21 from "../../migrations/sqlite/0021_stored_bytes.sql" with { type: "text" }
import sqlite22 from "../../migrations/sqlite/0022_stored_deliveries.sql" with { type: "text" }
import sqlite23 from "../../migrations/sqlite/0023_drop_consent_heads.sql" with { type: "text" }
import sqlite24 from "../../migrations/sqlite/0024_message_address.sql" with { type: "text" }
import sqlite25 from "../../migrations/sqlite/0025_texts.sql" with { type: "text" }
import sqlite26 from "../../migrations/sqlite/0026_inbox.sql" with { type: "text" }
import sqlite27 from "../../migrations/sqlite/0027_push.sql" with { type: "text" }
import sqlite28 from "../../migrations/sqlite/0028_auth.sql" with { type: "text" }
import sqlite29 from "../../migrations/sqlite/0029_second_factors.sql" with { type: "text" }
import sqlite30 from "../../migrations/sqlite/0030_ai.sql" with { type: "text" }
import sqlite31 from "../../migrations/sqlite/0031_mail_recipes.sql" with { type: "text" }
import postgres0 from "../../migrations/postgres/0000_initial_schema.sql" with { type: "text" }
import postgres1 from "../../migrations/postgres/0001_inbound_mail.sql" with { type: "text" }
import postgres2 from "../../migrations/postgres/0002_message_schedule_and_template.sql" with { type: "text" }
import postgres3 from "../../migrations/postgres/0003_suppressions.sql" with { type: "text" }
import postgres4 from "../../migrations/postgres/0004_unsubscribe_links_and_consents.sql" with { type: "text" }
import postgres5 from "../../migrations/postgres/0005_templates.sql" with { type: "text" }
import postgres6 from "../../migrations/postgres/0006_inbound_raws.sql" with { type: "text" }
import postgres7 from "../../migrations/postgres/0007_reputation.sql" with { type: "text" }
import postgres8 from "../../migrations/postgres/0008_message_tracking.sql" with { type: "text" }
import postgres9 from "../../migrations/postgres/0009_message_files.sql" with { type: "text" }
import postgres10 from "../../migrations/postgres/0010_audience.sql" with { type: "text" }
import postgres11 from "../../migrations/postgres/0011_signing_keys.sql" with { type: "text" }
import postgres12 from "../../migrations/postgres/0012_search_of_subscribers.sql" with { type: "text" }
import postgres13 from "../../migrations/postgres/0013_merged_subscribers.sql" with { type: "text" }
import postgres14 from "../../migrations/postgres/0014_held_deliveries.sql" with { type: "text" }
import postgres15 from "../../migrations/postgres/0015_mailbox_reading.sql" with { type: "text" }
import postgres16 from "../../migrations/postgres/0016_postings_of_subscribers.sql" with { type: "text" }
import postgres17 from "../../migrations/postgres/0017_consent_heads.sql" with { type: "text" }
import postgres18 from "../../migrations/postgres/0018_webhook_totals.sql" with { type: "text" }
import postgres19 from "../../migrations/postgres/0019_suppression_diagnostics.sql" with { type: "text" }
import postgres20 from "../../migrations/postgres/0020_request_log_by_request.sql" with { type: "text" }
import postgres21 from "../../migrations/postgres/0021_stored_bytes.sql" with { type: "text" }
import postgres22 from "../../migrations/postgres/0022_stored_deliveries.sql" with { type: "text" }
import postgres23 from "../../migrations/postgres/0023_drop_consent_heads.sql" with { type: "text" }
import postgres24 from "../../migrations/postgres/0024_message_address.sql" with { type: "text" }
import postgres25 from "../../migrations/postgres/0025_texts.sql" with { type: "text" }
import postgres26 from "../../migrations/postgres/0026_inbox.sql" with { type: "text" }
import postgres27 from "../../migrations/postgres/0027_push.sql" with { type: "text" }
import postgres28 from "../../migrations/postgres/0028_auth.sql" with { type: "text" }
import postgres29 from "../../migrations/postgres/0029_second_factors.sql" with { type: "text" }
import postgres30 from "../../migrations/postgres/0030_ai.sql" with { type: "text" }
import postgres31 from "../../migrations/postgres/0031_mail_recipes.sql" with { type: "text" }

/** One step of the schema. */
export interface Migration {
  tag: string
  sql: string
}

/** Its name, and its statements for each engine. */
const STEPS: [tag: string, sqlite: string, postgres: string][] = [
  ["0000_initial_schema", sqlite0, postgres0],
  ["0001_inbound_mail", sqlite1, postgres1],
  ["0002_message_schedule_and_template", sqlite2, postgres2],
  ["0003_suppressions", sqlite3, postgres3],
  ["0004_unsubscribe_links_and_consents", sqlite4, postgres4],
  ["0005_templates", sqlite5, postgres5],
  ["0006_inbound_raws", sqlite6, postgres6],
  ["0007_reputation", sqlite7, postgres7],
  ["0008_message_tracking", sqlite8, postgres8],
  ["0009_message_files", sqlite9, postgres9],
  ["0010_audience", sqlite10, postgres10],
  ["0011_signing_keys", sqlite11, postgres11],
  ["0012_search_of_subscribers", sqlite12, postgres12],
  ["0013_merged_subscribers", sqlite13, postgres13],
  ["0014_held_deliveries", sqlite14, postgres14],
  ["0015_mailbox_reading", sqlite15, postgres15],
  ["0016_postings_of_subscribers", sqlite16, postgres16],
  ["0017_consent_heads", sqlite17, postgres17],
  ["0018_webhook_totals", sqlite18, postgres18],
  ["0019_suppression_diagnostics", sqlite19, postgres19],
  ["0020_request_log_by_request", sqlite20, postgres20],
  ["0021_stored_bytes", sqlite21, postgres21],
  ["0022_stored_deliveries", sqlite22, postgres22],
  ["0023_drop_consent_heads", sqlite23, postgres23],
  ["0024_message_address", sqlite24, postgres24],
  ["0025_texts", sqlite25, postgres25],
  ["0026_inbox", sqlite26, postgres26],
  ["0027_push", sqlite27, postgres27],
  ["0028_auth", sqlite28, postgres28],
  ["0029_second_factors", sqlite29, postgres29],
  ["0030_ai", sqlite30, postgres30],
  ["0031_mail_recipes", sqlite31, postgres31],
]

/** The migrations of both engines, oldest first. The binary carries them. */
export const embedded: Record<"sqlite" | "postgres", Migration[]> = {
  sqlite: STEPS.map(([tag, sql]) => ({ tag, sql })),
  postgres: STEPS.map(([tag, , sql]) => ({ tag, sql })),
}
