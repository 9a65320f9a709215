import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { SQL } from "bun"
import { countingRelay } from "../fakes/counting-relay"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { drained, send, until } from "../scenarios/mails"
import { relaySettings } from "../scenarios/serve"

const MAILS = 60
/** Nothing else keeps the other from it: how long it then works is the speed of the machine. */
const BACK_WITHIN_MS = 45_000

const has_postgres = !noPostgres()
if (!has_postgres) note("a node that dies: start the tests by `bun run test`")

describe.skipIf(!has_postgres)("of two nodes on one Postgres", () => {
  test("one is killed, and after 45 seconds at most the other may have all of its mail", async () => {
    await using database = await freshDatabase()
    const homes = [makeHome(), makeHome()]
    let is_slow = true
    using relay = countingRelay({ atRecipient: () => (is_slow ? "stall" : undefined) })
    const env = relaySettings(relay.port, {
      DATABASE_URL: database.url,
      BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      BELFRY_STORAGE_BLOBS_DIR: join(homes[0] ?? "", "blobs"),
    })
    const started: Belfry[] = []
    const start = async (home: string) => {
      const server = await startBelfry({ home, env })
      started.push(server)
      return server
    }
    try {
      const first = await start(homes[0] ?? "")
      for (let at = 0; at < MAILS; at++) {
        await send(first, { from: "me@example.test", to: "ann@example.test" })
      }
      await using sql = new SQL(database.url, { max: 1 })
      const lastLease = async () => {
        const [row] = await sql`SELECT max(lease_until) AS last FROM messages`
        return Number(row.last) || undefined
      }
      await until("it has claimed some, and hangs", lastLease)
      first.kill("SIGKILL")
      await first.exited
      is_slow = false
      const kept_until = (await lastLease()) ?? 0
      expect(kept_until - Date.now()).toBeLessThan(BACK_WITHIN_MS)
      const second = await start(homes[1] ?? "")
      await drained(second)
      expect(relay.counts().size).toBe(MAILS)
    } finally {
      for (const server of started) server.kill("SIGKILL")
      for (const home of homes) rmSync(home, { recursive: true, force: true })
    }
  })
})
