import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import { SQL } from "bun"
import { countingRelay } from "../fakes/counting-relay"
import { makeHome } from "../harness/binary"
import { expectNoneLost, expectNoneTwice } from "../harness/nothing-lost"
import { missing, note } from "../harness/peers"
import { startPgBouncer } from "../harness/pgbouncer"
import { freePort } from "../harness/ports"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { isVerified, startReceiver } from "../harness/receiver"
import { sizes } from "../harness/sizes"
import { dial } from "../harness/socket"
import { countOf, drained, send, until } from "./mails"
import { initialise, relaySettings, startServe } from "./serve"

const EACH = 30
const POLLING = "notifications do not arrive; polling instead"
const MASTER_KEY = Buffer.alloc(32, 7).toString("base64")

const has_postgres = !noPostgres()
if (!has_postgres) note("PgBouncer and a Postgres that is away: start the tests by `bun run test`")
const has_bouncer = has_postgres && !missing("pgbouncer")

/** A home that outlives the server in it. */
function lastingHome() {
  const home = makeHome()
  return { home, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

/** Texts of the statements that sessions of the database ran last. */
async function lastStatements(url: string): Promise<string[]> {
  await using sql = new SQL(url, { max: 1 })
  const rows = await sql`SELECT query FROM pg_stat_activity WHERE datname = current_database()`
  return rows.map(({ query }: { query: string }) => query)
}

async function makeWebhook(node: { request: typeof fetch }, url: string): Promise<string> {
  const body = JSON.stringify({ url, events: ["email.sent"] })
  const response = await node.request("/v1/webhooks", { method: "POST", body })
  const { data } = (await response.json()) as { data: { secret: string } }
  expect(response.status).toBe(201)
  return data.secret
}

describe.skipIf(!has_bouncer)("two nodes behind PgBouncer in transaction mode", () => {
  const WAYS: [string, boolean][] = [
    ["without DATABASE_DIRECT_URL they poll, and say so once", false],
    ["with it they listen past it", true],
  ]
  test.each(WAYS.slice(0, sizes.variants))(
    "send, deliver, stream and call webhooks: %s",
    async (_, is_direct) => {
      await using database = await freshDatabase()
      await using bouncer = await startPgBouncer(database.url)
      using first = lastingHome()
      using second = lastingHome()
      using relay = countingRelay({ delay_ms: 30 })
      using receiver = startReceiver()
      const env = relaySettings(relay.port, {
        DATABASE_URL: bouncer.through(database.url),
        ...(is_direct && { DATABASE_DIRECT_URL: database.url }),
        BELFRY_SECURITY_MASTER_KEY: MASTER_KEY,
        BELFRY_DELIVERY_CONCURRENCY: "4",
        BELFRY_STORAGE_BLOBS_DIR: join(first.home, "blobs"),
        BELFRY_WEBHOOKS_REQUIRE_HTTPS: "false",
        BELFRY_WEBHOOKS_ALLOW_PRIVATE: "127.0.0.0/8",
      })
      const api_key = await initialise(first.home, env)
      await using one = await startServe({ home: first.home, api_key, env })
      await using two = await startServe({ home: second.home, api_key, env })
      const secret = await makeWebhook(one as never, receiver.url)
      using stream = await dial(two.url, "", { key: api_key })

      const mail = { from: "me@example.test", to: "ann@example.test" }
      const sends = [one, two].flatMap((node) =>
        Array.from({ length: EACH }, () => send(node, mail)),
      )
      const ids = await Promise.all(sends)
      await drained(one)
      expect(await countOf(two, "sent")).toBe(2 * EACH)
      const counts = relay.counts()
      expectNoneLost(ids.filter((id) => !counts.has(`<${id}@example.test>`)))
      expect(counts.size).toBe(2 * EACH)
      expectNoneTwice(counts)

      await until("every webhook", () => receiver.received.length >= 2 * EACH)
      expect(new Set(receiver.ids()).size).toBe(2 * EACH)
      expect(receiver.received.every((one) => isVerified(secret, one))).toBe(true)
      await stream.next(
        ({ event }) => event?.type === "email.sent" && event.data.message_id === ids[0],
      )

      const listening = (await lastStatements(database.url)).filter((text) => /^LISTEN/.test(text))
      expect(listening.length > 0).toBe(is_direct)
      for (const node of [one, two]) {
        const told = node.stderr.all.filter((line) => line.includes(POLLING))
        expect(told).toHaveLength(is_direct ? 0 : 1)
        expect(node.stderr.all.filter((line) => /prepared statement/.test(line))).toEqual([])
      }
    },
  )
})

/** Nothing listens on the port before `open`; from then on it leads to the server. */
async function laterPort(url: string) {
  const port = await freePort()
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const target = connect(Number(new URL(url).port), "127.0.0.1")
    for (const socket of [client, target]) {
      sockets.add(socket)
      socket.on("error", () => {})
    }
    client.pipe(target)
    target.pipe(client)
  })
  const there = new URL(url)
  there.port = String(port)
  return {
    url: there.href,
    open: () => new Promise<void>((opened) => server.listen(port, "127.0.0.1", opened)),
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

test.skipIf(!has_postgres)("a Postgres that is away at boot is waited for", async () => {
  await using database = await freshDatabase()
  using later = await laterPort(database.url)
  using lasting = lastingHome()
  const base = relaySettings(9, { BELFRY_SECURITY_MASTER_KEY: MASTER_KEY })
  const api_key = await initialise(lasting.home, { ...base, DATABASE_URL: database.url })
  const told = Promise.withResolvers<void>()
  const env = { ...base, DATABASE_URL: later.url }
  const starting = startServe({
    home: lasting.home,
    api_key,
    env,
    onStderr: (line) => line.includes("does not answer; waiting") && told.resolve(),
  })
  await told.promise
  await later.open()
  await using node = await starting
  expect((await fetch(`${node.url}/readyz`)).status).toBe(200)
})
