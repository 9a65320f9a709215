import { openSqlite } from "../../src/store/sqlite"

/** A process that opens the file it is given, says "open" or why not, and then holds it. */
const [path = ""] = process.argv.slice(2)

try {
  const store = openSqlite({ path, cache_mb: 4, wal_autocheckpoint: 1000 })
  console.log("open")
  setInterval(() => store.stats, 60_000) // who forgets the store loses its lock to the collector
} catch (error) {
  console.log((error as Error).message)
  process.exitCode = 1
}
