import { Database } from "bun:sqlite"
import { describe, expect, test } from "bun:test"
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { type CountingRelay, countingRelay } from "../fakes/counting-relay"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { expectNoneLost, expectNoneTwice } from "../harness/nothing-lost"
import { note } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { countOf, drained, get, type Mail, post, problemOf, send, until } from "../scenarios/mails"
import { relaySettings } from "../scenarios/serve"
import { fileLimit, liftFileLimit, smallDisk } from "./small-disk"

const MB = 1024 * 1024
const FULL_MB = 20
const CYCLES = 3

const mail = { from: "me@example.test", to: "ann@example.test", text: "x".repeat(50_000) }

const trial = smallDisk(1)
trial?.[Symbol.dispose]()
const cannot_mount = trial === undefined
if (cannot_mount) note("a full disk, on a tmpfs: mounting is refused (a file-size limit stands in)")

/** Sends until it is refused. The ids of what was acknowledged, and the refusal. */
async function sendUntilRefused(server: Belfry) {
  const ids: string[] = []
  for (;;) {
    const response = await post(server, mail)
    if (response.status !== 201) return { ids, refusal: response }
    ids.push(((await response.json()) as { id: string }).id)
  }
}

/** What a caller of a full server is told, and what still works for him. */
async function expectRefusal(server: Belfry, refusal: Response, reasons: string[]) {
  expect(refusal.status).toBe(503)
  expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0)
  const problem = await problemOf(refusal)
  expect(problem.code).toBe("service_unavailable")
  expect(reasons).toContain(String(problem.details.reason))
  expect((await server.request("/v1/emails?per_page=1")).status).toBe(200)
  expect((await server.request("/healthz")).status).toBe(200)
  const readiness = await server.request("/readyz")
  expect([readiness.status, await readiness.json()]).toMatchObject([503, { status: "unavailable" }])
}

const takesAgain = (server: Belfry) =>
  until("it takes messages again", async () => {
    const response = await post(server, mail)
    return response.status === 201 && ((await response.json()) as { id: string }).id
  })

async function expectAllDelivered(server: Belfry, ids: string[], relay: CountingRelay) {
  await drained(server)
  const counts = relay.counts()
  expectNoneLost(ids.filter((id) => !counts.has(`<${id}@example.test>`)))
  expectNoneTwice(counts)
  expect(await countOf(server, "sent")).toBeGreaterThanOrEqual(ids.length)
  const last = await get<Mail>(server, `/v1/emails/${ids.at(-1)}`)
  expect(last.status).toBe("sent")
}

function expectIntegrity(path: string) {
  const database = new Database(path)
  expect(database.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }])
  database.close()
}

describe.skipIf(cannot_mount)("a small disk", () => {
  test("below the floor sends are refused, deliveries go on, and it heals by itself", async () => {
    using disk = smallDisk(64)
    using relay = countingRelay()
    if (!disk) throw new Error("mounting worked a moment ago")
    const floor = { BELFRY_STORAGE_MIN_FREE_MB: "16", BELFRY_STORAGE_BALLAST_MB: "4" }
    const env = relaySettings(relay.port, floor)
    await using server = await startBelfry({ env, args: ["--data-dir", disk.folder] })
    const ids = [await send(server, mail)]

    for (let cycle = 0; cycle < CYCLES; cycle++) {
      disk.fill(8 * MB)
      const { ids: more, refusal } = await sendUntilRefused(server)
      await expectRefusal(server, refusal, ["disk_low"])
      ids.push(...more)
      await drained(server) // what was accepted leaves all the same
      disk.free()
      ids.push(await takesAgain(server))
    }
    await expectAllDelivered(server, ids, relay)
    await until("ready", async () => (await server.request("/readyz")).status === 200)
    expect(await server.stop()).toBe(0)
    expectIntegrity(join(disk.folder, "belfry.db"))
  })

  test("full to the last byte: nothing acknowledged is lost, and it heals by itself", async () => {
    using disk = smallDisk(48)
    using relay = countingRelay({ delay_ms: 20 })
    if (!disk) throw new Error("mounting worked a moment ago")
    const none = { BELFRY_STORAGE_MIN_FREE_MB: "0", BELFRY_STORAGE_BALLAST_MB: "4" }
    const env = relaySettings(relay.port, none)
    await using server = await startBelfry({ env, args: ["--data-dir", disk.folder] })
    const ids: string[] = []
    expect(readdirSync(disk.folder)).toContain("ballast")

    for (let cycle = 0; cycle < CYCLES; cycle++) {
      disk.fill(MB)
      const { ids: more, refusal } = await sendUntilRefused(server)
      ids.push(...more)
      await expectRefusal(server, refusal, ["storage"])
      expect(existsSync(join(disk.folder, "ballast"))).toBe(false)
      disk.free()
      ids.push(await takesAgain(server))
    }
    await expectAllDelivered(server, ids, relay)
    expect(await server.stop()).toBe(0)
    expectIntegrity(join(disk.folder, "belfry.db"))
  })
})

const cannot_limit = Bun.which("prlimit") === null
if (cannot_limit) note("a file-size limit: needs prlimit (util-linux)")

test.skipIf(cannot_limit || !(sizes.file_limits || cannot_mount))(
  "where no file may grow: refused with 503, nothing lost, and it heals by itself",
  async () => {
    const home = makeHome()
    using relay = countingRelay({ delay_ms: 5 })
    try {
      const env = relaySettings(relay.port)
      await using server = await startBelfry({ home, env, wrap: fileLimit(FULL_MB) })
      const { ids, refusal } = await sendUntilRefused(server)
      expect(ids.length).toBeGreaterThan(10)
      await expectRefusal(server, refusal, ["storage"])
      liftFileLimit(server.pid) // `exec` left the pid of the shell to it
      ids.push(await takesAgain(server))
      await expectAllDelivered(server, ids, relay)
      expect(await server.stop()).toBe(0)
      expectIntegrity(join(home, "belfry/belfry.db"))
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  },
)
