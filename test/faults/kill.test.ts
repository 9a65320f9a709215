import { Database } from "bun:sqlite"
import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { type CountingRelay, countingRelay } from "../fakes/counting-relay"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { expectNoneLost } from "../harness/nothing-lost"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { countOf, drained, post } from "../scenarios/mails"
import { relaySettings } from "../scenarios/serve"

const SENDERS = 12
const DELIVERIES = 8
/** Composed, on the wire, or with an outcome that is not on disk. */
const IN_FLIGHT = 4 * DELIVERIES
const PAUSE_MS = 8
const LOAD_MS = { least: 150, most: 550 }
const RETRIED_A_ROUND = 10
const DRAIN_DEADLINE_MS = 300_000

/** What the callers of a server that is killed again and again know. */
interface Ledger {
  /** By idempotency key: the id that a 201 told. */
  acknowledged: Map<string, string>
  /** Keys of requests that got no answer. */
  unanswered: Set<string>
}

const mail = (key: string) => ({ from: "me@example.test", to: "ann@example.test", subject: key })

/** One request, entered in the ledger before and after. */
async function sendOnce(server: Belfry, key: string, ledger: Ledger) {
  ledger.unanswered.add(key)
  const response = await post(server, mail(key), { "idempotency-key": key })
  const body = (await response.json()) as { id: string }
  expect({ status: response.status, body }).toMatchObject({ status: 201 })
  ledger.unanswered.delete(key)
  const known = ledger.acknowledged.get(key)
  if (known !== undefined) expect(body.id).toBe(known)
  ledger.acknowledged.set(key, body.id)
}

async function loadUntilKilled(server: Belfry, ledger: Ledger) {
  let is_alive = true
  const dead = server.exited.then(() => {
    is_alive = false
  })
  const sender = async () => {
    while (is_alive) {
      const key = crypto.randomUUID()
      try {
        await sendOnce(server, key, ledger)
      } catch (error) {
        if (is_alive) await Promise.race([dead, Bun.sleep(1000)])
        if (is_alive) throw error // it was not the kill
      }
      await Bun.sleep(PAUSE_MS)
    }
  }
  const load = Promise.all(Array.from({ length: SENDERS }, sender))
  await Bun.sleep(LOAD_MS.least + Math.random() * (LOAD_MS.most - LOAD_MS.least))
  server.kill("SIGKILL")
  await server.exited
  await load
}

/** Who got no answer asks again; and so do some who did, to hear the same id. */
async function askAgain(server: Belfry, ledger: Ledger) {
  const answered = [...ledger.acknowledged.keys()].slice(-RETRIED_A_ROUND)
  const keys = [...ledger.unanswered, ...answered]
  await Promise.all(keys.map((key) => sendOnce(server, key, ledger)))
}

async function survive(kills: number, env: Record<string, string>, check: (home: string) => void) {
  const home = makeHome()
  const ledger: Ledger = { acknowledged: new Map(), unanswered: new Set() }
  using relay = countingRelay({ delay_ms: 10 })
  const settings = { BELFRY_DELIVERY_CONCURRENCY: String(DELIVERIES), ...env }
  const options = { home, env: relaySettings(relay.port, settings) }
  try {
    for (relay.round = 1; relay.round <= kills; relay.round++) {
      await using server = await startBelfry(options)
      await askAgain(server, ledger)
      await loadUntilKilled(server, ledger)
      check(home)
    }
    await using last = await startBelfry(options)
    await askAgain(last, ledger)
    await drained(last, DRAIN_DEADLINE_MS)
    expect(await countOf(last, "sent")).toBe(ledger.acknowledged.size)
    expect(await last.stop()).toBe(0)
    check(home)
    judge(relay, ledger, kills)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

function judge(relay: CountingRelay, { acknowledged }: Ledger, kills: number) {
  const counts = relay.counts()
  const wanted = [...acknowledged.values()].map((id) => `<${id}@example.test>`)
  expectNoneLost(wanted.filter((id) => !counts.has(id)))
  expect(counts.size).toBe(new Set(wanted).size) // nothing that nobody asked for

  const by_subject = Map.groupBy(relay.receipts, ({ raw }) => /^Subject: (.*)$/m.exec(raw)?.[1])
  const ids = [...by_subject.values()].map((all) => new Set(all.map((one) => one.message_id)).size)
  expect(Math.max(...ids)).toBe(1) // a repetition carries the same Message-ID

  const repeated = [...counts].filter(([, count]) => count > 1).map(([id]) => id)
  const copies = relay.receipts.filter(({ message_id }) => repeated.includes(message_id))
  const by_round = Map.groupBy(copies, ({ round }) => round)
  for (const [round, list] of by_round) {
    const messages = new Set(list.map(({ message_id }) => message_id))
    expect({ round, copies: list.length }).toEqual({ round, copies: messages.size })
  }
  // Every copy but the last of a message was in flight when its round was killed.
  const lost_answers = copies.filter(({ message_id, round }) =>
    copies.some((later) => later.message_id === message_id && later.round > round),
  )
  for (const [round, list] of Map.groupBy(lost_answers, (one) => one.round)) {
    expect({ round, in_flight: Math.min(list.length, IN_FLIGHT) }).toEqual({
      round,
      in_flight: list.length,
    })
  }
  const extra = relay.receipts.length - counts.size
  console.log(`${kills} kills: ${acknowledged.size} acknowledged, 0 lost, ${extra} repeated`)
}

function checkIntegrity(home: string) {
  const database = new Database(join(home, "belfry/belfry.db"))
  try {
    expect(database.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }])
  } finally {
    database.close()
  }
}

test(`SQLite: ${sizes.kills} times kill -9 under load, and nothing acknowledged is lost`, async () => {
  await survive(sizes.kills, {}, checkIntegrity)
})

const has_postgres = !noPostgres()
if (!has_postgres) note("kill -9 on Postgres: start the tests by `bun run test`")

describe.skipIf(!has_postgres)("on Postgres", () => {
  const kills = sizes.postgres_kills

  test(`${kills} times kill -9 under load, and nothing acknowledged is lost`, async () => {
    await using database = await freshDatabase()
    const env = { DATABASE_URL: database.url, BELFRY_DELIVERY_LEASE: "5s" }
    await survive(kills, env, () => {})
  })
})
