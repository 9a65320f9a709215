import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { count, eq, getTableName, inArray } from "drizzle-orm"
import { settings } from "../../../src/core/config"
import { openSecrets } from "../../../src/core/secrets"
import { LEASED, READY, RESTORE_HOLD } from "../../../src/jobs/work-item"
import { messages } from "../../../src/messages/tables"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { restore } from "../../../src/operations/restore/restore"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { leftover } from "../../harness/leftovers"
import { quietLog } from "../../harness/quiet"
import { sizes } from "../../harness/sizes"
import { schemaTables } from "../../harness/table-rows"
import { FIXTURE_KEY, fixturesOf, statementsOf } from "../../harness/upgrade"
import { target } from "./original"

quietLog()

/** A restore ends what these have, or adds rows of its own. */
const CHANGED = new Set([
  "nodes",
  "instance_values",
  "paused_queues",
  "refresh_tokens",
  "device_codes",
  "mfa_challenges",
  "password_resets",
])

/** All that is in the fixtures was sent. */
const OPENED = "UPDATE messages SET state = ? WHERE id = (SELECT min(id) FROM messages)"

/** A backup of a database that still has the schema of the fixture. */
async function archiveOf(path: string) {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-earlier-")))
  const file = join(folder, "belfry.db")
  const statements = await statementsOf(path)
  const rows = new Map<string, number>()
  using database = new Database(file, { create: true })
  database.transaction(() => {
    for (const statement of statements) database.run(statement)
  })()
  database.run(OPENED, [READY])
  for (const table of await schemaTables()) {
    const name = getTableName(table)
    if (!database.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(name)) continue
    rows.set(name, Number(database.query(`SELECT count(*) FROM "${name}"`).values()[0]?.[0]))
  }
  const own = { data_dir: folder, database_url: null, "storage.min_free_mb": 0 }
  const secrets = openSecrets({ data_dir: folder, master_key: FIXTURE_KEY })
  const made = await createBackup({ settings: { ...settings(), ...own }, secrets })
  return { folder, secrets, rows, archive: await openArchive(made.path) }
}

test.each(fixturesOf("sqlite").filter((_, at) => at % sizes.schema_steps === 0))(
  "a backup with the schema of $tag is restored with all of its rows, and held",
  async ({ tag, path }) => {
    const { folder, secrets, rows, archive } = await archiveOf(path)
    expect(archive.manifest.migrations.at(-1)).toBe(tag)
    await using place = await target(folder)
    const parts = {
      settings: place.settings,
      secrets,
      master_key: null,
      runs_on: ALLOWED_WHILE_HELD,
    }
    const changed = await restore(archive, { ...parts, revoke_keys: false })
    expect(changed.held.messages).toBe(1)
    const store = await place.open()
    try {
      for (const table of await schemaTables()) {
        const name = getTableName(table)
        const was = rows.get(name)
        if (was === undefined || CHANGED.has(name)) continue
        const [found] = await store.read.select({ n: count() }).from(table)
        if (name === "counters")
          expect(Number(found?.n)).toBeGreaterThanOrEqual(was) // migrations add some
        else expect([name, Number(found?.n)]).toEqual([name, was])
      }
      const open = inArray(messages.state, [READY, LEASED])
      expect(await store.read.select().from(messages).where(open)).toEqual([])
      const held = await store.read.select().from(messages).where(eq(messages.owner, RESTORE_HOLD))
      expect(held).toHaveLength(1)
    } finally {
      await store.close()
    }
  },
)
