/**
 * The entry of a later version, which the tests of upgrades build: it has one more migration (next-release.ts).
 * The variable NEXT_VERSION tells what is wrong with it.
 */
import { embedded } from "../../src/store/migrations"

const fault = process.env.NEXT_VERSION ?? ""
const words = process.argv.slice(2)
const serves = words[0] === "serve"

/** Takes a second or more, and writes much before it commits. */
const long = `CREATE TABLE next_version AS WITH RECURSIVE row(id) AS
  (SELECT 1 UNION ALL SELECT id + 1 FROM row WHERE id < 5000000) SELECT id FROM row`
const wrong: Record<string, string> = {
  "bad-migration": "SELECT * FROM no_such_table",
  "long-migration": long,
}
for (const engine of ["sqlite", "postgres"] as const) {
  const next = fault === "same-schema" ? embedded[engine].pop() : embedded[engine].at(-1)
  if (next) next.sql = wrong[fault] ?? next.sql
}

const is_late = fault === "slow" && (serves || words[0] === "migrate")
if (is_late && !words.includes("--dry-run")) await Bun.sleep(1000)
if (serves && fault === "sick") {
  process.stderr.write("This version is sick.\n")
  process.exit(1)
}
if (serves && fault === "hangs") await Bun.sleep(3_600_000)
await import("../../cli/main")
