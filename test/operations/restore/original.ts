import { Database } from "bun:sqlite"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { type Settings, settings } from "../../../src/core/config"
import { newId } from "../../../src/core/ids"
import { openSecrets } from "../../../src/core/secrets"
import { now } from "../../../src/core/time"
import { type NamedBlob, writeArchive } from "../../../src/operations/backup/archive-writer"
import { openStore } from "../../../src/store/open"
import { freshDatabase } from "../../harness/postgres"
import { type TestService, testService } from "../../harness/service"
import { engine } from "../../harness/store"

/** A server on SQLite that has data, and how to make a backup of it. */
export async function original() {
  const service = await testService({ engine: "sqlite" })
  const project = await service.project()
  const secrets = openSecrets({ data_dir: service.folder, master_key: null })
  return {
    service,
    project,
    secrets,
    async send(changes: object = {}): Promise<string> {
      const mail = { from: "a@example.test", to: "b@example.test", subject: "Hi", text: "hello" }
      const sent = await project.post("/v1/emails", { ...mail, ...changes })
      return sent.body.data.id
    },
    archive: () => archiveOf(service, secrets.key_id),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** An archive of the database as it is, with the files that its rows name. */
async function archiveOf({ folder }: TestService, master_key_id: string): Promise<string> {
  const id = newId()
  const database = join(folder, `${id}.db`)
  const file = new Database(join(folder, "test.db"), { strict: true })
  file.run("VACUUM INTO ?", [database])
  const values = (query: string) => file.query(query).values().flat().map(String)
  const tables = values("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
  const count = (table: string) => Number(values(`SELECT count(*) FROM "${table}"`)[0])
  const named = values("SELECT DISTINCT sha256 FROM message_files ORDER BY 1")
  const blobs = named.map((sha256): NamedBlob => {
    const path = join(folder, "blobs", sha256.slice(0, 2), sha256)
    return { folder: "blobs", sha256, path }
  })
  const rows = Object.fromEntries(tables.map((table) => [table, count(table)]))
  const migrations = values("SELECT tag FROM belfry_migrations ORDER BY 1")
  file.close()
  const path = join(folder, `${id}.tar`)
  await writeArchive(path, {
    database,
    blobs: blobs.filter((blob) => existsSync(blob.path)),
    config: { "log.level": "info" },
    manifest: {
      ...{ id, version: "0.1.0", created_at: now(), engine: "sqlite", migrations, master_key_id },
      rows,
    },
  })
  return path
}

/** Where a backup is restored, on the engine of this run: a folder that is not there yet. */
export async function target(parent: string, on: "sqlite" | "postgres" = engine) {
  const database = on === "postgres" ? await freshDatabase() : undefined
  const own: Settings = {
    ...settings(),
    data_dir: join(parent, `restored-${newId()}`),
    database_url: database?.url ?? null,
    "storage.min_free_mb": 0,
  }
  return {
    settings: own,
    open: () => openStore(own, { begin: "never" }),
    async [Symbol.asyncDispose]() {
      await database?.[Symbol.asyncDispose]()
    },
  }
}
