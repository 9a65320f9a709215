/**
 * Looks addresses up in a suppression list of this size, on the database of the settings. A process of its
 * own: `suppression-lanes.ts ROWS SECONDS` prints the median and the 99th percentile in microseconds of one
 * look-up, and the median of 200 addresses at once.
 */
import { Database } from "bun:sqlite"
import { SQL } from "bun"
import { settings } from "../../src/core/config"
import { bytesOfId, newId } from "../../src/core/ids"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { suppressedAmong } from "../../src/suppressions/look-up"

const [rows = 10_000, seconds = 1] = process.argv.slice(2).map(Number)
const PROJECT = newId()
const AT_ONCE = 200

const digits = String(rows).length
const addressOf = (number: number) => `${String(number).padStart(digits, "0")}@example.com`

/** Half of the addresses that are asked for are suppressed. */
const someAddress = () => addressOf(Math.floor(Math.random() * 2 * rows))

async function fillSqlite(path: string) {
  const database = new Database(path)
  database.run("PRAGMA synchronous = OFF")
  const insert = database.prepare(
    `INSERT INTO suppressions (id, project_id, channel, address, reason, origin, scope_type, scope_key, created_at)
     VALUES (?, ?, 'email', ?, ?, 'event', 'project', '', 1795370000000)`,
  )
  const project = bytesOfId(PROJECT)
  const some = database.transaction((from: number, to: number) => {
    for (let at = from; at < to; at++) {
      insert.run(bytesOfId(newId()), project, addressOf(at), at % 3 ? "bounce" : "complaint")
    }
  })
  for (let at = 0; at < rows; at += 100_000) some(at, Math.min(rows, at + 100_000))
  database.run("PRAGMA wal_checkpoint(TRUNCATE)")
  database.close()
}

async function fillPostgres(url: string) {
  const database = new SQL(url, { max: 1 })
  await database.unsafe("SET synchronous_commit = off")
  // Ids rise as ours do, so that an index grows at its end.
  const id = "('01a20000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid"
  for (let at = 0; at < rows; at += 500_000) {
    await database.unsafe(`
      INSERT INTO suppressions (id, project_id, channel, address, reason, origin, scope_type, scope_key, created_at)
      SELECT ${id}, '${PROJECT}', 'email', lpad(n::text, ${digits}, '0') || '@example.com',
        CASE WHEN n % 3 = 0 THEN 'complaint' ELSE 'bounce' END, 'event', 'project', '', 1795370000000
      FROM generate_series(${at}, ${Math.min(rows, at + 500_000) - 1}) AS n`)
  }
  await database.unsafe("ANALYZE suppressions")
  await database.close()
}

/** How long each of many look-ups takes, one after the other, in microseconds, the shortest first. */
async function timesOf(store: Store, addresses: number): Promise<number[]> {
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  while (performance.now() < end) {
    const asked = Array.from({ length: addresses }, someAddress)
    const begun = performance.now()
    const found = await suppressedAmong(
      store.read,
      { project_id: PROJECT, channel: "email" },
      asked,
    )
    times.push((performance.now() - begun) * 1000)
    for (const address of found.keys()) {
      if (Number.parseInt(address, 10) >= rows) throw new Error(`${address} is not suppressed`)
    }
    const expected = asked.filter((one) => Number.parseInt(one, 10) < rows)
    if (found.size !== new Set(expected).size) throw new Error("an address was not found")
  }
  return times.sort((a, b) => a - b)
}

const at = (times: number[], share: number) => times[Math.floor(times.length * share)] ?? Number.NaN

const { database_url } = settings()
const first = await openStore(settings())
const path = first.file?.path ?? ""
await first.close()
if (database_url === null) await fillSqlite(path)
else await fillPostgres(database_url)

const store = await openStore(settings())
await timesOf(store, 1) // warm
const one = await timesOf(store, 1)
const many = await timesOf(store, AT_ONCE)
console.log(JSON.stringify({ p50: at(one, 0.5), p99: at(one, 0.99), many: at(many, 0.5) }))
await store.close()
process.exit(0)
