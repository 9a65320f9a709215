import { Database } from "bun:sqlite"
import { afterEach, beforeEach, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Settings } from "../../../src/core/config"
import type { Secrets } from "../../../src/core/secrets"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { restore } from "../../../src/operations/restore/restore"
import { sqlitePath } from "../../../src/store/open"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { person } from "../../harness/people"
import { quietLog } from "../../harness/quiet"
import { original, target } from "./original"

quietLog()

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-engines-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** They tell of the folder and the server that the rows are on. */
const OF_THE_PLACE = new Set(["database_mark", "lost_events", "blob_marker", "postgres_cluster"])

/** Every row of a file, by table, in the order of its rows' texts. */
function rowsIn(path: string): Record<string, string[]> {
  using file = new Database(path, { readonly: true })
  const tables = file.query("SELECT name FROM sqlite_schema WHERE type = 'table'").values()
  const names = tables.flat().map(String)
  return Object.fromEntries(
    names
      .filter((name) => !name.startsWith("sqlite_") && name !== "belfry_migrations")
      .map((name) => {
        const rows = file.query(`SELECT * FROM "${name}"`).all() as Record<string, unknown>[]
        const kept = rows.filter((row) => !OF_THE_PLACE.has(String(row.name)))
        return [name, kept.map((row) => JSON.stringify(row, hexOf)).sort()]
      }),
  )
}

const hexOf = (_: string, value: unknown) => (value instanceof Uint8Array ? value.toHex() : value)

async function move(path: string, settings: Settings, secrets: Secrets): Promise<string> {
  const parts = {
    settings,
    secrets,
    master_key: null,
    runs_on: ALLOWED_WHILE_HELD,
    revoke_keys: false,
  }
  await restore(await openArchive(path), parts)
  return (await createBackup({ settings, secrets })).path
}

test("SQLite to Postgres to SQLite: every row is the same", async () => {
  await using box = await original()
  const attachments = [{ filename: "a.txt", content: Buffer.from("a").toString("base64") }]
  await box.send({ attachments, tags: ["one"], metadata: { order: "1042" }, subject: "Grüße" })
  await box.send()
  await person(box.service)
  const hook = { url: "http://127.0.0.1:65000/hook", events: ["*"] }
  expect((await box.project.post("/v1/webhooks", hook)).status).toBe(201)
  await box.send()
  await using first = await target(folder, "sqlite")
  await using second = await target(folder, "postgres")
  await using third = await target(folder, "sqlite")
  const archive = await move(await box.archive(), first.settings, box.secrets)
  const moved = await move(archive, second.settings, box.secrets)
  await move(moved, third.settings, box.secrets)
  const [before, after] = [first, third].map(({ settings }) => rowsIn(sqlitePath(settings)))
  expect(Object.keys(before ?? {})).toContain("webhook_deliveries")
  expect(before?.messages).toHaveLength(3)
  expect(after).toEqual(before)
})
