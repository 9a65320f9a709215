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

/** One step of the schema. `when` decides the order: milliseconds since 1970. */
export interface Migration {
  tag: string
  when: number
  sql: string
}

/** The migrations of both engines, oldest first. The binary carries them. */
export const embedded: { sqlite: Migration[]; postgres: Migration[] } = {
  sqlite: [
    { tag: "0000_initial_schema", when: 1795360092498, sql: sqlite0 },
    { tag: "0001_inbound_mail", when: 1795366154446, sql: sqlite1 },
    { tag: "0002_message_schedule_and_template", when: 1795376985773, sql: sqlite2 },
    { tag: "0003_suppressions", when: 1795377682118, sql: sqlite3 },
    { tag: "0004_unsubscribe_links_and_consents", when: 1795377770291, sql: sqlite4 },
    { tag: "0005_templates", when: 1795378120477, sql: sqlite5 },
    { tag: "0006_inbound_raws", when: 1795379056818, sql: sqlite6 },
    { tag: "0007_reputation", when: 1795379655226, sql: sqlite7 },
    { tag: "0008_message_tracking", when: 1795380030375, sql: sqlite8 },
    { tag: "0009_message_files", when: 1795380299420, sql: sqlite9 },
    { tag: "0010_audience", when: 1795388733470, sql: sqlite10 },
    { tag: "0011_signing_keys", when: 1795389917183, sql: sqlite11 },
    { tag: "0012_search_of_subscribers", when: 1795392771212, sql: sqlite12 },
    { tag: "0013_merged_subscribers", when: 1795400663812, sql: sqlite13 },
    { tag: "0014_held_deliveries", when: 1795401544547, sql: sqlite14 },
    { tag: "0015_mailbox_reading", when: 1795412865103, sql: sqlite15 },
    { tag: "0016_postings_of_subscribers", when: 1795424954092, sql: sqlite16 },
    { tag: "0017_consent_heads", when: 1795728835546, sql: sqlite17 },
    { tag: "0018_webhook_totals", when: 1795862974283, sql: sqlite18 },
    { tag: "0019_suppression_diagnostics", when: 1795865142744, sql: sqlite19 },
    { tag: "0020_request_log_by_request", when: 1795866120887, sql: sqlite20 },
    { tag: "0021_stored_bytes", when: 1795867215686, sql: sqlite21 },
    { tag: "0022_stored_deliveries", when: 1795875703708, sql: sqlite22 },
    { tag: "0023_drop_consent_heads", when: 1795895179992, sql: sqlite23 },
    { tag: "0024_message_address", when: 1795898477254, sql: sqlite24 },
  ],
  postgres: [
    { tag: "0000_initial_schema", when: 1795360094293, sql: postgres0 },
    { tag: "0001_inbound_mail", when: 1795366154672, sql: postgres1 },
    { tag: "0002_message_schedule_and_template", when: 1795376986340, sql: postgres2 },
    { tag: "0003_suppressions", when: 1795377682490, sql: postgres3 },
    { tag: "0004_unsubscribe_links_and_consents", when: 1795377770691, sql: postgres4 },
    { tag: "0005_templates", when: 1795378120800, sql: postgres5 },
    { tag: "0006_inbound_raws", when: 1795379057625, sql: postgres6 },
    { tag: "0007_reputation", when: 1795379655991, sql: postgres7 },
    { tag: "0008_message_tracking", when: 1795380031237, sql: postgres8 },
    { tag: "0009_message_files", when: 1795380300409, sql: postgres9 },
    { tag: "0010_audience", when: 1795388734034, sql: postgres10 },
    { tag: "0011_signing_keys", when: 1795389919069, sql: postgres11 },
    { tag: "0012_search_of_subscribers", when: 1795392771950, sql: postgres12 },
    { tag: "0013_merged_subscribers", when: 1795400664258, sql: postgres13 },
    { tag: "0014_held_deliveries", when: 1795401544997, sql: postgres14 },
    { tag: "0015_mailbox_reading", when: 1795412865783, sql: postgres15 },
    { tag: "0016_postings_of_subscribers", when: 1795424955046, sql: postgres16 },
    { tag: "0017_consent_heads", when: 1795728835998, sql: postgres17 },
    { tag: "0018_webhook_totals", when: 1795862976156, sql: postgres18 },
    { tag: "0019_suppression_diagnostics", when: 1795865144316, sql: postgres19 },
    { tag: "0020_request_log_by_request", when: 1795866122432, sql: postgres20 },
    { tag: "0021_stored_bytes", when: 1795867217030, sql: postgres21 },
    { tag: "0022_stored_deliveries", when: 1795875705533, sql: postgres22 },
    { tag: "0023_drop_consent_heads", when: 1795895180601, sql: postgres23 },
    { tag: "0024_message_address", when: 1795898477272, sql: postgres24 },
  ],
}
