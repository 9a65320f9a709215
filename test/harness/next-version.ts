/**
 * The entry of a later version, which the tests of upgrades build: it has one more migration (next-release.ts).
 * The variable NEXT_VERSION tells what is wrong with it.
 */
import { embedded } from "../../src/store/migrations"

const fault = process.env.NEXT_VERSION ?? ""
const words = process.argv.slice(2)
const serves = words[0] === "serve"
const is_trial = words.some((word) => word.endsWith("/upgrade/trial"))

/** Takes a second or more, and writes much before it commits. */
const long = `CREATE TABLE next_version AS WITH RECURSIVE row(id) AS
  (SELECT 1 UNION ALL SELECT id + 1 FROM row WHERE id < 5000000) SELECT id FROM row`
const migrates = !is_trial && words.includes("migrate")
const late: Record<string, string> = {
  "bad-migration-later": "SELECT * FROM gone",
  "long-migration": long,
}
const wrong = fault === "bad-migration" ? "SELECT * FROM no_such_table" : migrates && late[fault]
for (const engine of ["sqlite", "postgres"] as const) {
  const next = fault === "same-schema" ? embedded[engine].pop() : embedded[engine].at(-1)
  if (next && wrong) next.sql = wrong
}

const is_late = fault === "slow" && !is_trial && (serves || words[0] === "migrate")
if (is_late && !words.includes("--dry-run")) await Bun.sleep(1000)
if (serves && fault === "sick") {
  process.stderr.write("This version is sick.\n")
  process.exit(1)
}
if (serves && !is_trial && fault === "sick-later") process.exit(1)
if (serves && !is_trial && fault === "hangs-later") await Bun.sleep(3_600_000)
await import("../../cli/main")
