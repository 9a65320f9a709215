// Written by `bun run generate`; do not edit.
import sqlite0 from "../../migrations/sqlite/0000_start.sql" with { type: "text" }
import sqlite1 from "../../migrations/sqlite/0001_long_jobs.sql" with { type: "text" }
import sqlite2 from "../../migrations/sqlite/0002_webhooks.sql" with { type: "text" }
import sqlite3 from "../../migrations/sqlite/0003_reach.sql" with { type: "text" }
import sqlite4 from "../../migrations/sqlite/0004_reviewed.sql" with { type: "text" }
import sqlite5 from "../../migrations/sqlite/0005_key_domain.sql" with { type: "text" }
import sqlite6 from "../../migrations/sqlite/0006_sealed_headers.sql" with { type: "text" }
import sqlite7 from "../../migrations/sqlite/0007_provider_trouble.sql" with { type: "text" }
import postgres0 from "../../migrations/postgres/0000_start.sql" with { type: "text" }
import postgres1 from "../../migrations/postgres/0001_long_jobs.sql" with { type: "text" }
import postgres2 from "../../migrations/postgres/0002_webhooks.sql" with { type: "text" }
import postgres3 from "../../migrations/postgres/0003_reach.sql" with { type: "text" }
import postgres4 from "../../migrations/postgres/0004_reviewed.sql" with { type: "text" }
import postgres5 from "../../migrations/postgres/0005_key_domain.sql" with { type: "text" }
import postgres6 from "../../migrations/postgres/0006_sealed_headers.sql" with { type: "text" }
import postgres7 from "../../migrations/postgres/0007_provider_trouble.sql" with { type: "text" }

/** One step of the schema. `when` decides the order: milliseconds since 1970. */
export interface Migration {
  tag: string
  when: number
  sql: string
}

/** The migrations of both engines, oldest first. The binary carries them. */
export const embedded: { sqlite: Migration[]; postgres: Migration[] } = {
  sqlite: [
    { tag: "0000_start", when: 1795238414013, sql: sqlite0 },
    { tag: "0001_long_jobs", when: 1795240931001, sql: sqlite1 },
    { tag: "0002_webhooks", when: 1795244839796, sql: sqlite2 },
    { tag: "0003_reach", when: 1795247982057, sql: sqlite3 },
    { tag: "0004_reviewed", when: 1795257376332, sql: sqlite4 },
    { tag: "0005_key_domain", when: 1795345429948, sql: sqlite5 },
    { tag: "0006_sealed_headers", when: 1795345742804, sql: sqlite6 },
    { tag: "0007_provider_trouble", when: 1795346711079, sql: sqlite7 },
  ],
  postgres: [
    { tag: "0000_start", when: 1795238414234, sql: postgres0 },
    { tag: "0001_long_jobs", when: 1795240931228, sql: postgres1 },
    { tag: "0002_webhooks", when: 1795244840160, sql: postgres2 },
    { tag: "0003_reach", when: 1795247982346, sql: postgres3 },
    { tag: "0004_reviewed", when: 1795257376747, sql: postgres4 },
    { tag: "0005_key_domain", when: 1795345430780, sql: postgres5 },
    { tag: "0006_sealed_headers", when: 1795345743770, sql: postgres6 },
    { tag: "0007_provider_trouble", when: 1795346711547, sql: postgres7 },
  ],
}
