import { expect, test } from "bun:test"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { settings } from "../../../src/core/config"
import { openSecrets } from "../../../src/core/secrets"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { verifyArchive } from "../../../src/operations/backup/verify-archive"
import * as instanceValues from "../../../src/store/instance-values"
import { openStore } from "../../../src/store/open"
import { quietLog } from "../../harness/quiet"
import { testStore } from "../../harness/store"

quietLog()

const sum = (path: string) =>
  new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex")

test("with storage.wal_autocheckpoint = 0 no backup copies the log, with a server or without", async () => {
  await using base = await testStore("sqlite")
  const own = {
    ...settings(),
    data_dir: join(base.folder, "own"),
    database_url: null,
    "storage.sqlite.path": join(base.folder, "own", "belfry.db"),
    "storage.wal_autocheckpoint": 0,
    "storage.min_free_mb": 0,
  }
  const path = own["storage.sqlite.path"]
  const store = await openStore(own)
  for (let number = 0; number < 50; number++) {
    await store.tx((tx) => instanceValues.set(tx, `value ${number}`, "x".repeat(100_000)))
  }
  const log_bytes = statSync(`${path}-wal`).size
  expect(log_bytes).toBeGreaterThan(5_000_000)
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
    expect(manifest.rows.instance_values).toBe(50)
  }
})
