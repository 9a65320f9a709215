import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { countingRelay } from "../fakes/counting-relay"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { drained, send } from "../scenarios/mails"
import { relaySettings } from "../scenarios/serve"

const MAILS = 60
const BACK_WITHIN_MS = 45_000

const has_postgres = !noPostgres()
if (!has_postgres) note("a node that dies: start the tests by `bun run test`")

describe.skipIf(!has_postgres)("of two nodes on one Postgres", () => {
  test("one is killed, and the other has all of its mail within 45 seconds", async () => {
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
      await Bun.sleep(1000) // it has claimed them, and hangs
      first.kill("SIGKILL")
      await first.exited
      is_slow = false
      const died = performance.now()
      const second = await start(homes[1] ?? "")
      await drained(second, 2 * BACK_WITHIN_MS)
      expect(performance.now() - died).toBeLessThan(BACK_WITHIN_MS)
      expect(relay.counts().size).toBe(MAILS)
    } finally {
      for (const server of started) server.kill("SIGKILL")
      for (const home of homes) rmSync(home, { recursive: true, force: true })
    }
  })
})
