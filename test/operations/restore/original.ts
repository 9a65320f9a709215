import { join } from "node:path"
import { type Settings, settings } from "../../../src/core/config"
import { newId } from "../../../src/core/ids"
import { openSecrets } from "../../../src/core/secrets"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { openStore } from "../../../src/store/open"
import { freshDatabase } from "../../harness/postgres"
import { testService } from "../../harness/service"
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
    async archive(): Promise<string> {
      const own = {
        data_dir: service.folder,
        database_url: null,
        "storage.sqlite.path": join(service.folder, "test.db"),
        "storage.min_free_mb": 0,
      }
      return (await createBackup({ settings: { ...settings(), ...own }, secrets })).path
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
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
