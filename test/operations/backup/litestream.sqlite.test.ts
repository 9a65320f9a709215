import { expect, test } from "bun:test"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { settings } from "../../../src/core/config"
import { openSecrets } from "../../../src/core/secrets"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { verifyArchive } from "../../../src/operations/backup/verify-archive"
import { filePages, giveBack } from "../../../src/operations/give-back"
import { requireMasterKey } from "../../../src/operations/instance"
import { rotateMasterKey } from "../../../src/operations/master-key"
import { tightDiskSweeper } from "../../../src/operations/tight-disk"
import * as instanceValues from "../../../src/store/instance-values"
import { openStore } from "../../../src/store/open"
import { quietLog } from "../../harness/quiet"
import { testStore } from "../../harness/store"

quietLog()

const sum = (path: string) =>
  new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex")

const VALUES = 50

/** A store whose log is left to Litestream, with five megabytes in it. */
async function leftToLitestream(data_dir: string) {
  const own = {
    ...settings(),
    data_dir,
    database_url: null,
    "storage.sqlite.path": join(data_dir, "belfry.db"),
    "storage.wal_autocheckpoint": 0,
    "storage.min_free_mb": 0,
  }
  const path = own["storage.sqlite.path"]
  const store = await openStore(own)
  for (let number = 0; number < VALUES; number++) {
    await store.tx((tx) => instanceValues.set(tx, `value ${number}`, "x".repeat(100_000)))
  }
  const log_bytes = () => statSync(`${path}-wal`).size
  expect(log_bytes()).toBeGreaterThan(5_000_000)
  return { own, path, store, log_bytes }
}

test("with storage.wal_autocheckpoint = 0 no backup copies the log, with a server or without", async () => {
  await using base = await testStore("sqlite")
  const { own, path, store } = await leftToLitestream(join(base.folder, "own"))
  const states = () => [sum(path), sum(`${path}-wal`)]
  const before = states()
  const secrets = openSecrets({ data_dir: join(base.folder, "own"), master_key: null })
  const backups = [await createBackup({ settings: own, secrets })]
  expect(states()).toEqual(before)

  await store.close()
  const closed = states()
  backups.push(await createBackup({ settings: own, secrets }))
  expect(states()).toEqual(closed)
  for (const backup of backups) {
    const { manifest } = await verifyArchive(backup.path)
    expect(manifest.rows.instance_values).toBe(VALUES)
  }
})

test("nor do a rotation, the return of space, a tight disk, a deletion and the stop", async () => {
  await using base = await testStore("sqlite")
  const { own, path, store, log_bytes } = await leftToLitestream(join(base.folder, "own"))
  const before = sum(path)
  let length = log_bytes()
  const requireUncopied = () => {
    expect(sum(path)).toBe(before)
    expect(log_bytes()).toBeGreaterThanOrEqual(length)
    length = log_bytes()
  }
  const secrets = openSecrets({ data_dir: own.data_dir, master_key: null })
  await requireMasterKey(store, secrets)
  await rotateMasterKey({ store, secrets }, { new_key: null, end_links: false })
  requireUncopied()

  const remove = async (from: number, to: number) => {
    for (let number = from; number < to; number++) {
      await store.tx((tx) => instanceValues.remove(tx, `value ${number}`))
    }
  }
  await remove(0, 20)
  expect(await giveBack(store, { everything: true })).toBeGreaterThan(1_000_000)
  requireUncopied()
  await remove(20, 40)
  const disk = { free_bytes: () => 0 }
  await tightDiskSweeper(store, { disk, min_free_mb: 1, sweepFiles: async () => {} })()
  expect(filePages(store)?.free).toBe(0)
  requireUncopied()

  expect(await store.emptyLog()).toBe(false)
  requireUncopied()
  await store.close()
  requireUncopied()
})
