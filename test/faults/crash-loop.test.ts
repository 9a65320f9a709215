import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { countingRelay } from "../fakes/counting-relay"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { sizes } from "../harness/sizes"
import { countOf, drained, get, type Mail, post, reaches, send } from "../scenarios/mails"
import { relaySettings } from "../scenarios/serve"

const SENDERS = 8
const LOAD_MS = 250
/** Enough others are on their way beside the message that ends the process. */
const OTHERS_PAUSE_MS = 150
const SETTINGS = { BELFRY_DELIVERY_CONCURRENCY: "20" }

const letter = (to: string) => ({ from: "me@example.test", to, subject: to })

/** Sends as fast as it is answered, or with a pause, until the server is gone. */
async function load(server: Belfry, pause_ms = 0) {
  let is_alive = true
  void server.exited.then(() => {
    is_alive = false
  })
  const sender = async () => {
    while (is_alive) {
      await post(server, letter("ann@example.test")).catch(() => {})
      await Bun.sleep(pause_ms)
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, sender))
}

test(`after ${sizes.crash_loops} times kill -9 at full load nothing is held, and everything is sent`, async () => {
  const home = makeHome()
  using relay = countingRelay({ delay_ms: 20 })
  const options = { home, env: relaySettings(relay.port, SETTINGS) }
  try {
    for (let kill = 0; kill < sizes.crash_loops; kill++) {
      await using server = await startBelfry(options)
      const loaded = load(server)
      await Bun.sleep(LOAD_MS)
      server.kill("SIGKILL")
      await server.exited
      await loaded
    }
    await using last = await startBelfry(options)
    await drained(last, 60_000).catch(() => {}) // what is left is told below
    using database = new Database(join(home, "belfry/belfry.db"), { readonly: true })
    const open = "SELECT state, owner, attempt, status_reason FROM messages WHERE state <> 4"
    expect(database.query(open).all()).toEqual([])
    expect(await countOf(last, "failed")).toBe(0)
    expect(await last.stop()).toBe(0)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test("a message that ends the process again and again is held with that reason, and the box lives", async () => {
  const home = makeHome()
  let server: Belfry | undefined
  let deaths = 0
  using relay = countingRelay({
    delay_ms: 20,
    atEnd(recipient) {
      if (!recipient.startsWith("poison")) return undefined
      deaths += 1
      server?.kill("SIGKILL") // as a fault in native code would end it
      return "stall"
    },
  })
  const options = { home, env: relaySettings(relay.port, SETTINGS) }
  try {
    server = await startBelfry(options)
    for (let at = 0; at < 60; at++) await send(server, letter("ann@example.test"))
    const id = await send(server, letter("poison@example.test"))
    let [lives, is_held] = [0, false]
    while (!is_held && ++lives < 12) {
      const loaded = load(server, OTHERS_PAUSE_MS)
      const dead = server.exited.then(() => "dead")
      const held = (async () => {
        for (;;) {
          const mail = await get<Mail>(server as Belfry, `/v1/emails/${id}`).catch(() => undefined)
          if (mail?.status_reason) return "held"
          await Bun.sleep(100)
        }
      })()
      is_held = (await Promise.race([dead, held])) === "held"
      if (is_held) break
      await loaded
      server = await startBelfry(options)
    }
    expect(is_held).toBe(true)
    expect(deaths).toBe(5) // two among others, three alone
    const mail = await get<Mail>(server, `/v1/emails/${id}`)
    expect(mail).toMatchObject({ status: "queued", attempts: 0 })
    expect(mail.status_reason).toContain("stopped three times while it worked on this alone")

    const other = await send(server, letter("kim@example.test"))
    expect((await reaches(server, other, "sent")).attempts).toBe(1)
    const path = `/v1/emails/${id}/cancel`
    expect((await server.request(path, { method: "POST" })).status).toBe(200)
    expect(deaths).toBe(5)
    server.kill("SIGKILL")
    await server.exited
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
