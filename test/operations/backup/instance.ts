import { join } from "node:path"
import { openBlobs } from "../../../src/core/blobs"
import { type Settings, settings } from "../../../src/core/config"
import { openSecrets } from "../../../src/core/secrets"
import * as instanceValues from "../../../src/store/instance-values"
import { testStore } from "../../harness/store"

/** A server's folder and database, on the engine of this run, without the server. */
export async function instance(changes: Partial<Settings> = {}) {
  const base = await testStore()
  const { store, folder, database_url } = base
  const secrets = openSecrets({ data_dir: folder, master_key: null })
  const own: Settings = {
    ...settings(),
    data_dir: folder,
    database_url,
    "storage.sqlite.path": join(folder, "test.db"),
    "storage.min_free_mb": 0,
    ...changes,
  }
  const blobs = openBlobs(join(folder, "blobs"))
  const inbound_blobs = openBlobs(join(folder, "blobs", "inbound"))
  await store.tx(async (tx) => {
    await instanceValues.set(tx, "master_key_id", secrets.key_id)
    await instanceValues.set(tx, "something", secrets.seal("secret", "something"))
  })
  return {
    store,
    folder,
    blobs,
    inbound_blobs,
    secrets,
    settings: own,
    dir: own["backup.dir"] ?? join(folder, "backups"),
    [Symbol.asyncDispose]: () => base[Symbol.asyncDispose](),
  }
}
