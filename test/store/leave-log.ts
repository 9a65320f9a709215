import { sql } from "drizzle-orm"
import { openSqlite } from "../../src/store/sqlite"

/** A process that opens the file it is given, writes, and ends in the way that is named. */
const [path = "", way] = process.argv.slice(2)

const store = openSqlite({ path, cache_mb: 4, wal_autocheckpoint: 0 })
const newer = sql`INSERT INTO belfry_migrations (tag, applied_at) VALUES ('9999_later', 0)`
const plain = sql`INSERT INTO instance_values (name, value) VALUES (${way}, 'x')`
const row = way === "newer" ? newer : plain
await store.tx(async (tx) => void (await tx.run(row)))
if (way === "exit") process.exit(0)
if (way === "thrown") throw new Error("It ends the process.")
if (way !== "open") await store.close()
