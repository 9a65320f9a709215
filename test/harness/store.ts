import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { settings } from "../../src/core/config"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { keptForRun } from "./kept-for-run"
import { leftover } from "./leftovers"
import { freshDatabase, sharedTemplate } from "./postgres"

/** The engine of this run. */
export const engine = settings().database_url ? "postgres" : "sqlite"

export interface TestStore extends AsyncDisposable {
  store: Store
  /** For whatever else needs files; it goes with the store. */
  folder: string
  /** Where it lies: null on SQLite, whose file is `test.db` in the folder. */
  database_url: string | null
}

/** An empty store, on the engine of this run: `await using test = await testStore()`. */
export async function testStore(on: "sqlite" | "postgres" = engine): Promise<TestStore> {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-store-")))
  const database = on === "postgres" ? await freshDatabase(await migrated()) : undefined
  const made = database ? undefined : await keptForRun("migrated.db", migrateFile)
  if (made) copyFileSync(made, join(folder, "test.db"))
  const store = await openStore({
    ...settings(),
    data_dir: folder,
    database_url: database?.url ?? null,
    "storage.sqlite.path": join(folder, "test.db"),
  })
  return {
    store,
    folder,
    database_url: database?.url ?? null,
    async [Symbol.asyncDispose]() {
      await store.close()
      await database?.[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** As `migrated`, for SQLite. */
async function migrateFile(draft: string) {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-migrated-")))
  const path = join(data_dir, "test.db")
  const own = { data_dir, database_url: null, "storage.sqlite.path": path }
  const store = await openStore({ ...settings(), ...own })
  await store.close() // its log is in the file now
  copyFileSync(path, draft)
}

let template: Promise<string> | undefined

/** Migrating takes longer than most tests: the first store of a run does it, the others copy it. */
const migrated = () => {
  template ??= sharedTemplate("belfry_migrated", async (database_url) => {
    const store = await openStore({ ...settings(), database_url })
    await store.close()
  })
  return template
}
