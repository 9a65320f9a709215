import { openSqlite } from "../../src/store/sqlite"
import { rawSqlite } from "../../src/store/statements"

/** A process that opens the file it is given, writes, and ends in the way that is named. */
const [path = "", way] = process.argv.slice(2)

const store = openSqlite({ path, cache_mb: 4, wal_autocheckpoint: 0 })
const [table, name] =
  way === "newer"
    ? ["belfry_migrations (tag, applied_at)", "9999_later"]
    : ["instance_values (name, value)", way]
await store.tx(async (tx) => {
  rawSqlite.get(tx)?.run(`INSERT INTO ${table} VALUES (?, 0)`, [name ?? ""])
})
if (way === "exit") process.exit(0)
if (way === "thrown") throw new Error("It ends the process.")
if (way !== "open") await store.close()
