import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { followCluster } from "./accounts/cluster"
import { demandMasterKey, demandSharedBlobs, probe } from "./accounts/instance"
import { type Blobs, openBlobs } from "./core/blobs"
import type { Settings } from "./core/config"
import { type Disk, openDisk } from "./core/disk"
import { openSecrets, type Secrets } from "./core/secrets"
import type { Workers } from "./core/workers"
import { openStore } from "./store/open"
import type { Store } from "./store/store"

/** No bound on the work, but on a disk that never answers: ending a thread inside SQLite is rude. */
const CHECKPOINT_MILLISECONDS = 600_000

export interface Storage {
  store: Store
  secrets: Secrets
  blobs: Blobs
  disk: Disk
}

/** Opens everything that lies on the disk or in the database; `undo` learns how to close it. */
export async function openStorage(
  settings: Settings,
  workers: Workers,
  undo: (() => unknown)[],
): Promise<Storage> {
  const { data_dir } = settings
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  const ear: { hear: (error: unknown) => void } = { hear: () => {} }
  const store = await openStore(settings, {
    onTrouble: (error) => ear.hear(error),
    checkpoint: (path) => workers.run("checkpoint", path, { deadline_ms: CHECKPOINT_MILLISECONDS }),
  })
  undo.push(() => store.close())

  const disk = openDisk({
    dir: data_dir,
    min_free_mb: settings["storage.min_free_mb"],
    ballast_mb: settings["storage.ballast_mb"],
    probe: () => probe(store),
  })
  undo.push(() => disk.close())
  ear.hear = (error) => void disk.failed(error)
  await disk.keepBallast()

  const secrets = openSecrets({ data_dir, master_key: settings["security.master_key"] })
  await demandMasterKey(store, secrets)
  await followCluster(store)
  const folder = settings["storage.blobs.dir"] ?? join(data_dir, "blobs")
  const blobs = openBlobs(folder, (error) => void disk.failed(error))
  if (settings.database_url) await demandSharedBlobs(store, blobs)
  return { store, secrets, blobs, disk }
}
