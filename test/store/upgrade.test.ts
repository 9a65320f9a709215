import { Database } from "bun:sqlite"
import { afterAll, expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SQL } from "bun"
import { getTableName } from "drizzle-orm"
import { loadSettings } from "../../src/core/config"
import { projects } from "../../src/identity/tables"
import { countedRows, countInSteps } from "../../src/operations/counted-rows"
import { STORED } from "../../src/plans/stored-bytes"
import { start } from "../../src/server"
import { total } from "../../src/store/counters"
import { embedded } from "../../src/store/migrations"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { ensureFirst } from "../../src/tenancy/setup"
import { leftover } from "../harness/leftovers"
import { OWN_PORTS } from "../harness/own-ports"
import { freshDatabase } from "../harness/postgres"
import { quietLog } from "../harness/quiet"
import { sizes } from "../harness/sizes"
import { engine } from "../harness/store"
import { schemaTables } from "../harness/table-rows"
import { FIXTURE_KEY, fixturesOf, statementsOf } from "../harness/upgrade"
import { wrongTotals } from "../harness/wrong-totals"

quietLog()

type Row = Record<string, unknown>

const open: { [Symbol.asyncDispose](): PromiseLike<void> }[] = []
afterAll(async () => {
  for (const one of open) await one[Symbol.asyncDispose]()
})

/** The database of an earlier version, and how to look at its rows without any schema. */
async function restored(path: string) {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-upgrade-")))
  const statements = await statementsOf(path)
  if (engine === "sqlite") {
    const file = join(folder, "belfry.db")
    using database = new Database(file, { create: true })
    database.transaction(() => {
      for (const statement of statements) database.run(statement)
    })()
    const rows = async (table: string) => {
      using reader = new Database(file, { readonly: true })
      return reader.query(`SELECT * FROM "${table}"`).all() as Row[]
    }
    return { folder, database_url: null, rows }
  }
  const database = await freshDatabase()
  open.push(database)
  const query = async (...list: string[]) => {
    const sql = new SQL(database.url, { max: 1 })
    try {
      let found: Row[] = []
      for (const one of list) found = await sql.unsafe(one)
      return [...found]
    } finally {
      await sql.close()
    }
  }
  await query(...statements)
  return {
    folder,
    database_url: database.url,
    rows: (name: string) => query(`SELECT * FROM "${name}"`),
  }
}

const settingsOf = ({ folder, database_url }: { folder: string; database_url: string | null }) =>
  loadSettings({
    environment: {},
    flags: {
      data_dir: folder,
      ...(database_url !== null && { database_url }),
      "security.master_key": FIXTURE_KEY,
      ...OWN_PORTS,
    },
  })

const tablesNow = await schemaTables()

/** A table that a later migration drops, with a value of the same name. */
const GONE = "consent_heads"

const fixtures = fixturesOf(engine)

test("every schema but the latest is kept with rows of its time", () => {
  expect(fixtures.map(({ tag }) => tag)).toEqual(
    embedded[engine].slice(0, -1).map(({ tag }) => tag),
  )
})

test.each(fixtures)(
  "a database of $tag keeps all of its rows, and they are read",
  async ({ path }) => {
    const old = await restored(path)
    const inserted = (await Bun.file(path).text()).matchAll(/^INSERT INTO "(\w+)"/gm)
    const names = [...new Set([...inserted].map(([, name = ""]) => name))]
    expect(names.length).toBeGreaterThan(40)
    const before = new Map<string, Row[]>()
    for (const name of names.filter((one) => one !== GONE)) {
      before.set(
        name,
        (await old.rows(name)).filter((row) => row.name !== GONE),
      )
    }

    const store = await openStore(settingsOf(old).values, { begin: "never" })
    for (const table of tablesNow) {
      const was = before.get(getTableName(table))
      const least = was?.length ?? 0 // a migration may add counters
      if (was) expect((await store.read.select().from(table)).length).toBeGreaterThanOrEqual(least)
    }
    for (const { id } of await store.read.select({ id: projects.id }).from(projects)) {
      expect(await wrongTotals(store.read, id)).toEqual([])
    }
    await requireStoredBytes(store)
    await store.close()

    for (const [name, rows] of before) {
      const was = rows.map((row) => renamed(name, row))
      const after = await old.rows(name)
      const kept = after.map((row) => pick(row, Object.keys(was[0] ?? {})))
      const grows = name === "belfry_migrations" || name === "counters"
      if (grows) expect(kept).toEqual(expect.arrayContaining(was))
      else expect(kept.map(text).sort()).toEqual(was.map(text).sort())
    }
  },
)

/** What received and caught mail and deliveries store is counted from the rows that were there. */
async function requireStoredBytes({ read }: Store) {
  for (const { id } of await read.select({ id: projects.id }).from(projects)) {
    for (const name of [STORED.received, STORED.mailbox]) {
      const rows = countedRows("project", id, name)
      const counted = rows && (await countInSteps(read, rows, async () => {}))
      expect([name, await total(read, id, name)]).toEqual([name, counted ?? 0])
    }
  }
}

/** Columns that a migration renamed, by table. */
const RENAMED: Record<string, Record<string, string>> = { messages: { recipient: "address" } }

const renamed = (table: string, row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [RENAMED[table]?.[name] ?? name, value]),
  )

const pick = (row: Row, names: string[]): Row =>
  Object.fromEntries(names.map((name) => [name, row[name]]))

const text = (row: Row) =>
  JSON.stringify(row, (_, value) => (typeof value === "bigint" ? `${value}n` : value))

const started = fixtures.filter((_, at) => at % sizes.schema_steps === 0)

test.each(started)("a server of today goes on with a database of $tag", async ({ path }) => {
  const old = await restored(path)
  const loaded = settingsOf(old)
  const running = await start({ loaded, mode: "up" })
  try {
    const { store, secrets } = running
    const { api_key } = await ensureFirst(store, secrets, { keep_key: true, new_key: false })
    const headers = { authorization: `Bearer ${api_key}`, "content-type": "application/json" }
    const ask = async (path: string, init: RequestInit = {}) => {
      const reply = await fetch(`${running.url}${path}`, { headers, ...init })
      return (await reply.json()) as { data: Row[] }
    }
    const { data } = await ask("/v1/emails")
    expect(data.map(({ status }) => status)).toEqual(["complained", "bounced", "delivered"])
    const id = data.at(-1)?.id
    const one = await ask(`/v1/emails/${id}`)
    const { attachments: files } = one.data as unknown as { attachments: { sha256: string }[] }
    const named = (await old.rows("message_files")).map(({ sha256 }) => sha256)
    expect(named).toEqual(expect.arrayContaining(files.map(({ sha256 }) => sha256)))
    expect(one.data).toMatchObject({ text: "Hello", subject: "Grüße 'quoted'", thread_id: id })
    const mail = { from: "you@mailbox.test", to: "ann@mailbox.test", subject: "s", text: "t" }
    const sent = await ask("/v1/emails", { method: "POST", body: JSON.stringify(mail) })
    expect(sent.data).toMatchObject({ status: "queued" })
  } finally {
    await running.stop()
  }
})
