import { Database } from "bun:sqlite"
import { beforeAll, describe, expect, test } from "bun:test"
import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { allOwners, brokenInProject } from "../../../src/operations/invariants"
import {
  accountStandIn,
  type Placeholder,
  rowsWithoutOwner,
} from "../../../src/operations/lost-owners"
import { mendRecovered } from "../../../src/operations/mend-recovered"
import { checkFile } from "../../../src/store/file-tasks"
import { bytesOfId } from "../../../src/store/id-bytes"
import { migrateSqlite } from "../../../src/store/migrate"
import { embedded } from "../../../src/store/migrations"
import type { LostRow } from "../../../src/store/recover/lost-rows"
import {
  type LostEntry,
  type RecoveredTable,
  recoverFile,
} from "../../../src/store/recover/recover"
import { openSqlite } from "../../../src/store/sqlite"
import { fillSome } from "../../../src/subscribers/fill-postings"
import { COMPLETE, postedUpTo } from "../../../src/subscribers/postings"
import { bounced, deliverAll, delivered } from "../../harness/delivery"
import { leftover } from "../../harness/leftovers"
import { mail } from "../../harness/mail"
import { quietLog } from "../../harness/quiet"
import { testService } from "../../harness/service"
import { sizes } from "../../harness/sizes"
import { endpoint } from "../../webhooks/endpoints"

quietLog()

const PAGE_BYTES = 4096
/** Of a test that recovers many files. */
const LONGEST_MS = 300_000
const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-recover-")))
const original = join(folder, "original.db")

/** A service with rows in many tables, some longer than a page; its file when nothing is in the log. */
beforeAll(async () => {
  await using service = await testService({ engine: "sqlite" })
  const project = await service.project()
  await endpoint(project, { events: ["*"] })
  for (let number = 0; number < 120; number++) {
    const text = `${number} `.repeat(number % 10 === 0 ? 6000 : 60)
    const to = `${number % 7 === 0 ? "no" : "ann"}${number}@example.test`
    await project.post("/v1/emails", mail({ to, text, tags: ["kept", `tag ${number % 5}`] }))
    const person = { external_id: `user ${number}`, email: to, tags: ["kept"] }
    await project.post("/v1/subscribers", person)
  }
  await deliverAll(service, (email) => (email.startsWith("no") ? bounced(email) : delivered(email)))
  for (let number = 0; number < 30; number++) {
    await project.post("/v1/emails", mail({ to: `late${number}@example.test` }))
  }
  const path = join(service.folder, "test.db")
  {
    using database = new Database(path)
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
  }
  copyFileSync(path, original)
})

/** Numbers from one seed, so that a failure can be seen again. */
function seeded(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const FILLS = [() => 0, () => 0xa5, (next: (below: number) => number) => next(256)]

/** A copy with some pages overwritten; which ones. */
function damagedCopy(seed: number) {
  const next = seeded(seed)
  const path = join(folder, `damaged-${seed}.db`)
  copyFileSync(original, path)
  const pages = statSync(path).size / PAGE_BYTES
  const bad = new Set<number>()
  for (let count = 1 + next(12); count > 0; count--) bad.add(1 + next(pages))
  const file = openSync(path, "r+")
  for (const page of bad) {
    const fill = FILLS[next(FILLS.length)] ?? (() => 0)
    const bytes = Buffer.from(Array.from({ length: PAGE_BYTES }, () => fill(next)))
    writeSync(file, bytes, 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  }
  closeSync(file)
  return { path, bad }
}

/** Every row by its table and row id, or by all its values where there is none. */
function rowsOf(path: string): Map<string, Map<string, string>> {
  using database = new Database(path, { readonly: true })
  const tables = database
    .query("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
    .all() as { name: string; sql: string }[]
  return new Map(
    tables.map(({ name, sql }) => {
      const has_rowid = !sql.includes("WITHOUT ROWID")
      const columns = has_rowid ? "rowid AS number, *" : "0 AS number, *"
      const rows = database.query(`SELECT ${columns} FROM "${name}"`).values()
      const entries = rows.map(([number, ...values]): [string, string] => {
        const text = JSON.stringify(values)
        return [has_rowid ? String(number) : text, text]
      })
      return [name, new Map(entries)]
    }),
  )
}

let original_rows: ReturnType<typeof rowsOf> | undefined
const originalRows = () => {
  original_rows ??= rowsOf(original)
  return original_rows
}

function recovered(from: string) {
  const to = `${from}.new`
  const entries: LostEntry[] = []
  const onLost = (entry: LostEntry) => entries.push(entry)
  const { tables, ...rest } = recoverFile({ from, to, onProgress: () => {}, onLost })
  const lost = entries.filter((entry): entry is LostRow => "key" in entry)
  return { to, lost, entries, ...rest, tables: new Map(tables.map((row) => [row.table, row])) }
}

/** How many rows did not come back. The list of migrations is made anew. */
function missingRows(to: string): number {
  const [had, has] = [originalRows(), rowsOf(to)]
  let missing = 0
  for (const [table, rows] of had) {
    if (table === "belfry_migrations") continue
    for (const number of rows.keys()) if (!has.get(table)?.has(number)) missing += 1
  }
  return missing
}

/** Demands that the list is empty only where every row came back. */
function demandHonest(path: string) {
  const { to, entries, pages } = recovered(path)
  const missing = missingRows(to)
  rmSync(to)
  expect({ path, missing, is_listed: missing === 0 || entries.length > 0 }).toEqual({
    ...{ path, missing, is_listed: true },
  })
  return { missing, entries, pages }
}

/** The tables whose every page is as it was. */
function untouched(bad: Set<number>): string[] {
  using database = new Database(original, { readonly: true })
  const pages = database.query("SELECT name, pageno FROM dbstat").values() as [string, number][]
  const hit = new Set(pages.flatMap(([name, page]) => (bad.has(page) ? [name] : [])))
  if (hit.has("sqlite_schema")) return []
  const isMap = (page: number) => page >= 2 && (page - 2) % 820 === 0
  if ([...bad].some(isMap)) return []
  return [...new Set(pages.map(([name]) => name))].filter((name) => !hit.has(name))
}

/** Changes that are meant: the counters, and the failed messages with what tells of them. */
async function demandMended(path: string) {
  const store = openSqlite({ path, cache_mb: 8, wal_autocheckpoint: 1000 })
  const placeholders: Placeholder[] = []
  try {
    await mendRecovered(store, (placeholder) => placeholders.push(placeholder))
    expect(await Array.fromAsync(rowsWithoutOwner(store.read))).toEqual([])
    const look = { db: store.read, pause: async () => {}, since: null, overdue_before: null }
    for await (const id of allOwners(store.read, "project")) {
      const places = await Array.fromAsync(brokenInProject(look, id))
      expect(places.filter(({ name }) => name !== "I4")).toEqual([])
    }
    return placeholders
  } finally {
    await store.close()
  }
}

describe("a file with overwritten pages", () => {
  const seeds = Array.from({ length: sizes.damaged_files }, (_, at) => at + 1)

  test.each(seeds)(
    "number %i: what comes back is sound, and what is told lost is lost",
    async (seed) => {
      const { path, bad } = damagedCopy(seed)
      const before = readFileSync(path)
      const { to, lost, entries, tables } = recovered(path)
      expect(readFileSync(path).equals(before)).toBe(true)
      if (entries.length === 0) expect(missingRows(to)).toBe(0)

      expect(checkFile({ path: to, how: "full" })).toEqual([])
      using database = new Database(to)
      expect(database.query("PRAGMA foreign_key_check").values()).toEqual([])

      const [had, has] = [originalRows(), rowsOf(to)]
      for (const [table, rows] of has) {
        if (table === "belfry_migrations") continue
        for (const [number, row] of rows)
          expect([table, had.get(table)?.get(number)]).toEqual([table, row])
        expect(tables.get(table)?.recovered).toBe(rows.size)
      }
      for (const { table, key } of lost) {
        const where = Object.keys(key).map((name) => `"${name}" = ?`)
        if (where.length === 0) continue
        const values = Object.entries(key).map(([name, value]) =>
          name === "name" ? value : bytesOfId(value),
        )
        const text = `SELECT 1 FROM "${table}" WHERE ${where.join(" AND ")}`
        const is_whole = is_whole_key(table, key)
        if (is_whole) expect(database.query(text).values(...(values as never[]))).toEqual([])
        using whole = new Database(original, { readonly: true })
        expect(whole.query(text).values(...(values as never[])).length).toBeGreaterThan(0)
      }
      const removed = new Set(
        lost.flatMap(({ table, reason }) => (reason === "unreadable" ? [] : [table])),
      )
      for (const table of untouched(bad)) {
        if (!had.has(table) || removed.has(table)) continue
        expect([table, has.get(table)?.size]).toEqual([table, had.get(table)?.size])
      }
      for (const [table, { lost: count }] of tables) {
        expect((had.get(table)?.size ?? 0) - (has.get(table)?.size ?? 0)).toBeGreaterThanOrEqual(
          count,
        )
      }
      await demandMended(to)
    },
  )

  /** Where the key has texts as well, its ids alone name several rows. */
  function is_whole_key(table: string, key: Record<string, string>): boolean {
    using database = new Database(original, { readonly: true })
    const columns = database.query(`PRAGMA table_info("${table}")`).all() as { pk: number }[]
    return columns.filter(({ pk }) => pk > 0).length === Object.keys(key).length
  }
})

function zero(path: string, pages: number[]) {
  const file = openSync(path, "r+")
  for (const page of pages)
    writeSync(file, Buffer.alloc(PAGE_BYTES), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  closeSync(file)
}

/** The pages of each table with those of its indexes. */
function pagesByTable(): Map<string, number[]> {
  using database = new Database(original, { readonly: true })
  const rows = database
    .query("SELECT s.tbl_name, d.pageno FROM dbstat d JOIN sqlite_schema s ON s.name = d.name")
    .values() as [string, number][]
  return new Map(
    [...Map.groupBy(rows, ([table]) => table)].map(([table, some]) => [
      table,
      some.map(([, page]) => page),
    ]),
  )
}

/** Every counter that is not 0: one without a row is 0 as well. */
function totalsOf(path: string) {
  using database = new Database(path, { readonly: true })
  return database
    .query("SELECT hex(project_id), name, value FROM counters WHERE value <> 0 ORDER BY 1, 2")
    .values()
}

describe("a file that is not only overwritten", () => {
  const total = (tables: Map<string, RecoveredTable>) =>
    [...tables.values()].reduce((sum, { recovered: count }) => sum + count, 0)

  test("a sound file comes back whole, and its log, too", () => {
    const path = join(folder, "with-log.db")
    copyFileSync(original, path)
    using writer = new Database(path)
    writer.run("PRAGMA journal_mode = WAL")
    writer.run("PRAGMA wal_autocheckpoint = 0")
    writer.run("INSERT INTO instance_values (name, value) VALUES ('in the log', 'x')")
    const { to, entries, pages, not_found } = recovered(path)
    const [had, has] = [rowsOf(path), rowsOf(to)]
    had.delete("belfry_migrations")
    has.delete("belfry_migrations")
    expect(has).toEqual(had)
    expect([entries, not_found]).toEqual([[], []])
    expect(pages).toMatchObject({ missing: 0, unreadable: 0, of_no_known_table: 0 })
  })

  test("a file without its first page comes back but for what that page had", () => {
    const path = join(folder, "headless.db")
    copyFileSync(original, path)
    const file = openSync(path, "r+")
    writeSync(file, Buffer.alloc(PAGE_BYTES, 0xa5), 0, PAGE_BYTES, 0)
    closeSync(file)
    const { to } = recovered(path)
    expect(rowsOf(to).get("messages")?.size).toBe(150)
  })

  test("a file that is cut off comes back up to its end", () => {
    const path = join(folder, "cut.db")
    copyFileSync(original, path)
    const pages = statSync(path).size / PAGE_BYTES
    truncateSync(path, Math.floor(pages * 0.8) * PAGE_BYTES)
    const { to, tables } = recovered(path)
    expect(checkFile({ path: to, how: "full" })).toEqual([])
    expect(total(tables)).toBeGreaterThan(100)
  })

  test(
    "a file that is cut off anywhere is never told to be whole",
    () => {
      const pages = statSync(original).size / PAGE_BYTES
      for (let step = 1; step <= sizes.cut_files; step++) {
        const path = join(folder, `cut-${step}.db`)
        copyFileSync(original, path)
        const left = Math.max(4, Math.floor((pages * step) / (sizes.cut_files + 1)))
        truncateSync(path, left * PAGE_BYTES + (step % 2) * 100)
        const { entries, pages: told } = demandHonest(path)
        expect(told).toMatchObject({ total: pages, missing: pages - left })
        const missing = entries.flatMap((entry) =>
          entry.reason === "missing_page" ? entry.pages : [],
        )
        expect(missing.reduce((sum, count) => sum + count, 0)).toBe(pages - left)
        rmSync(path)
      }
    },
    LONGEST_MS,
  )

  test(
    "a file with a part of zeros anywhere is never told to be whole",
    () => {
      const pages = statSync(original).size / PAGE_BYTES
      for (let step = 1; step <= sizes.cut_files; step++) {
        const path = join(folder, `zeros-${step}.db`)
        copyFileSync(original, path)
        const first = Math.floor((pages * step) / (sizes.cut_files + 1))
        const count = step % 3 === 0 ? pages - first : 1 + (step % 20)
        zero(
          path,
          Array.from({ length: count }, (_, at) => first + 1 + at).filter((page) => page <= pages),
        )
        demandHonest(path)
        rmSync(path)
      }
    },
    LONGEST_MS,
  )

  test(
    "a table that is wiped with all of its indexes is told by its name",
    () => {
      const counts = originalRows()
      const filled = [...pagesByTable()].filter(
        ([table]) => counts.get(table)?.size && table !== "belfry_migrations",
      )
      for (const [table, pages] of filled.filter((_, at) => at % sizes.wiped_steps === 0)) {
        const rows = counts.get(table)?.size ?? 0
        const path = join(folder, `wiped-${table}.db`)
        copyFileSync(original, path)
        zero(path, pages)
        const { missing, entries } = demandHonest(path)
        expect(missing).toBeGreaterThanOrEqual(rows)
        expect(entries).toContainEqual(
          expect.objectContaining({ table, reason: "unreadable_page" }),
        )
        rmSync(path)
      }
    },
    LONGEST_MS,
  )

  test("the page of an index costs no row, so nothing is listed", () => {
    const path = join(folder, "index.db")
    copyFileSync(original, path)
    using database = new Database(original, { readonly: true })
    const found = database
      .query("SELECT pageno FROM dbstat WHERE name = 'messages_by_project'")
      .values() as [number][]
    expect(found.length).toBeGreaterThan(0)
    zero(
      path,
      found.map(([page]) => page),
    )
    expect(demandHonest(path)).toMatchObject({ missing: 0, entries: [] })
  })

  test("tables whose line of the schema is lost are named", () => {
    const path = join(folder, "nameless.db")
    copyFileSync(original, path)
    using database = new Database(original, { readonly: true })
    const leaves = database
      .query("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema' AND pagetype = 'leaf'")
      .values() as [number][]
    zero(
      path,
      leaves.map(([page]) => page),
    )
    const { to, entries, not_found } = recovered(path)
    expect(entries).toContainEqual({
      ...{ table: "sqlite_schema", pages: leaves.length, reason: "unreadable_page" },
    })
    expect(entries).toContainEqual({ table: "messages", reason: "not_found" })
    expect(not_found).toContain("webhook_deliveries")
    expect(rowsOf(to).get("messages")?.size).toBe(150) // no other table has rows of this form
  })

  test("what follows from other rows is written anew", async () => {
    const path = join(folder, "derived.db")
    copyFileSync(original, path)
    const derived = ["subscriber_words", "subscriber_tags", "subscriber_postings", "counters"]
    for (const table of derived) zero(path, pagesByTable().get(table) ?? [])
    const { to } = recovered(path)
    const before = rowsOf(to)
    for (const table of derived) expect([table, before.get(table)?.size]).toEqual([table, 0])

    const store = openSqlite({ path: to, cache_mb: 8, wal_autocheckpoint: 1000 })
    try {
      await mendRecovered(store)
      expect(await postedUpTo(store.read)).toBeUndefined() // so the next start fills them
      while (await fillSome(store));
      expect(await postedUpTo(store.read)).toBe(COMPLETE)
    } finally {
      await store.close()
    }
    const [had, has] = [originalRows(), rowsOf(to)]
    for (const table of ["subscriber_words", "subscriber_tags"])
      expect(has.get(table)).toEqual(had.get(table))
    expect(has.get("subscriber_postings")?.size).toBe(had.get("subscriber_postings")?.size ?? 0)
    expect(totalsOf(to)).toEqual(totalsOf(original))
  })

  test("rows of a lost project keep within reach by a placeholder, which removes nothing", async () => {
    const path = join(folder, "homeless.db")
    copyFileSync(original, path)
    zero(path, pagesByTable().get("projects") ?? [])
    const { to } = recovered(path)
    const placeholders = await demandMended(to)
    expect(placeholders).toHaveLength(1)
    using whole = new Database(original, { readonly: true })
    using database = new Database(to, { readonly: true })
    const owners = "SELECT hex(id), hex(account_id) FROM projects"
    expect(database.query(owners).values()).toEqual(whole.query(owners).values())
    const [row] = database.query("SELECT name, settings FROM projects").values() as [
      [string, string],
    ]
    expect(row[0]).toBe("Recovered project")
    expect(JSON.parse(row[1]).retention).toMatchObject({ messages_days: 3650, bodies_days: 3650 })
    expect(placeholders[0]?.rows).toBeGreaterThan(150)
    expect(totalsOf(to)).toEqual(totalsOf(original))
  })

  test("a project keeps its settings although its account is lost", async () => {
    const path = join(folder, "ownerless.db")
    copyFileSync(original, path)
    zero(path, pagesByTable().get("accounts") ?? [])
    const to = `${path}.new`
    const entries: LostEntry[] = []
    const onLost = (entry: LostEntry) => entries.push(entry)
    const standIns = { accounts: accountStandIn }
    recoverFile({ from: path, to, onProgress: () => {}, onLost, standIns })
    expect(entries.filter(({ reason }) => reason === "placeholder")).toHaveLength(1)
    await demandMended(to)
    using database = new Database(to, { readonly: true })
    expect(database.query("PRAGMA foreign_key_check").values()).toEqual([])
    expect(rowsOf(to).get("projects")).toEqual(originalRows().get("projects"))
    using whole = new Database(original, { readonly: true })
    const ids = "SELECT hex(id) FROM accounts"
    expect(database.query(ids).values()).toEqual(whole.query(ids).values())
  })

  test("an endpoint hears of a message that fails without its content", async () => {
    const path = join(folder, "contentless.db")
    copyFileSync(original, path)
    {
      using database = new Database(path)
      const queued = "SELECT id FROM messages WHERE status = 'queued' LIMIT 1"
      database.run(`DELETE FROM message_contents WHERE message_id = (${queued})`)
      database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    }
    const { to } = recovered(path)
    await demandMended(to)
    using database = new Database(to, { readonly: true })
    const told = `SELECT d.event_type FROM webhook_deliveries d JOIN events e ON e.id = d.event_id
      JOIN messages m ON m.id = e.subject_id
      WHERE m.status = 'failed' AND m.status_reason = 'content_lost'`
    expect(database.query(told).values()).toContainEqual(["email.failed"])
  })

  test("a file of an earlier version keeps its schema, so that the next start migrates it", () => {
    const path = join(folder, "older.db")
    {
      using older = new Database(path)
      migrateSqlite(older, embedded.sqlite.slice(0, -2))
      older.run("INSERT INTO instance_values (name, value) VALUES ('a', 'b')")
    }
    using database = new Database(recovered(path).to)
    expect(database.query("SELECT count(*) FROM belfry_migrations").values()).toEqual([
      [embedded.sqlite.length - 2],
    ])
    expect(migrateSqlite(database)).toHaveLength(2)
  })

  test("no database at all is refused by its name", () => {
    const path = join(folder, "noise.db")
    const file = openSync(path, "w")
    writeSync(file, Buffer.alloc(20 * PAGE_BYTES, 7))
    closeSync(file)
    expect(() => recovered(path)).toThrow(`${path} has no row of a Belfry database`)
  })
})
