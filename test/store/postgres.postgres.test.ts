import { describe, expect, test } from "bun:test"
import { createServer } from "node:net"
import { settings } from "../../src/core/config"
import { openStore } from "../../src/store/open"
import { connectPatiently, DatabaseAway, sharesSessions } from "../../src/store/postgres"
import { connect } from "../../src/store/postgres-pool"
import { missing } from "../harness/peers"
import { startPgBouncer } from "../harness/pgbouncer"
import { freePort } from "../harness/ports"
import { freshDatabase } from "../harness/postgres"
import { quietLog } from "../harness/quiet"

const lines = quietLog()

const nowhere = async () => `postgres://ann:hunter2@127.0.0.1:${await freePort()}/mail`

const failure = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

describe("a Postgres that does not answer", () => {
  test("is an error at once where nobody waits, which names it without the password", async () => {
    const url = await nowhere()
    const error = await failure(connectPatiently(url, 1, {}))
    expect(error).toBeInstanceOf(DatabaseAway)
    expect(String(error)).toContain(`${new URL(url).host}/mail did not answer`)
    expect(String(error)).not.toContain("hunter2")
  })

  test("is told of again and again while it is waited for, and then an error", async () => {
    const before = lines().length
    const url = await nowhere()
    const error = await failure(connectPatiently(url, 1, { patience_ms: 1200, tell_every_ms: 300 }))
    expect(error).toBeInstanceOf(DatabaseAway)
    expect(String(error)).toMatch(/did not answer for \d+ s/)
    const told = lines().slice(before)
    expect(told.length).toBeGreaterThan(1)
    expect(told.every((line) => line.includes("does not answer; waiting"))).toBe(true)
  })

  test("is waited for although it takes connections and drops them", async () => {
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
    const { port } = server.address() as { port: number }
    const url = `postgres://ann@127.0.0.1:${port}/mail`
    const error = await failure(connectPatiently(url, 1, { patience_ms: 100 }))
    expect(error).toBeInstanceOf(DatabaseAway)
    server.close()
  })

  test("is not waited for where the database is missing: that does not mend itself", async () => {
    await using database = await freshDatabase()
    const url = database.url.replace(/[^/]+$/, "no_such_database")
    const error = await failure(connectPatiently(url, 1, { patience_ms: 60_000 }))
    expect(String(error)).toContain("no_such_database")
    expect(error).not.toBeInstanceOf(DatabaseAway)
  })
})

test("a Postgres of its own keeps a session for each connection", async () => {
  await using database = await freshDatabase()
  await using pool = connect(database.url, { max: 2 })
  expect(await sharesSessions(pool)).toBe(false)
})

describe.skipIf(missing("pgbouncer"))("behind PgBouncer in transaction mode", () => {
  test("sessions are shared, and that is noticed while others use it, too", async () => {
    await using database = await freshDatabase()
    await using bouncer = await startPgBouncer(database.url)
    await using pool = connect(bouncer.through(database.url), { max: 2 })
    expect(await sharesSessions(pool)).toBe(true)

    await using others = connect(bouncer.through(database.url), { max: 8, prepare: false })
    let is_over = false
    const noise = Array.from({ length: 8 }, async () => {
      while (!is_over) await others`SELECT pg_sleep(0.001)`
    })
    for (let time = 0; time < 20; time++) expect(await sharesSessions(pool)).toBe(true)
    is_over = true
    await Promise.all(noise)
  })

  test("several stores begin one database together, and read what they wrote", async () => {
    await using database = await freshDatabase()
    await using bouncer = await startPgBouncer(database.url)
    const database_url = bouncer.through(database.url)
    const opening = Array.from({ length: 6 }, () => openStore({ ...settings(), database_url }))
    const stores = await Promise.all(opening)
    await Promise.all(stores.map((store) => store.close()))
    await using sql = connect(database.url, { max: 1 })
    const [row] = await sql`SELECT count(*)::int AS count FROM belfry_migrations`
    expect(row.count).toBeGreaterThan(0)
  })
})

test("a command that needs what is there refuses an empty database, and leaves it empty", async () => {
  await using database = await freshDatabase()
  const opening = openStore({ ...settings(), database_url: database.url }, { begin: "never" })
  expect(String(await failure(opening))).toContain("is empty")
  await using sql = connect(database.url, { max: 1 })
  expect(await sql`SELECT 1 FROM pg_tables WHERE schemaname = 'public'`).toHaveLength(0)
})
