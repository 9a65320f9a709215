import { expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../../src/core/config"
import { NoRoomForRestore, requireRoom } from "../../../src/operations/restore/restore-target"
import { leftover } from "../../harness/leftovers"

/** A disk of its own, without a free byte. */
const FULL = "/proc/self"

test("each disk of a restore has to have room for what goes there", async () => {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-target-")))
  const flags = { data_dir, "storage.min_free_mb": 0 }
  const here = loadSettings({ environment: {}, flags }).values
  const elsewhere = { ...here, "storage.blobs.dir": FULL }
  const archive = (blob_bytes: number) => {
    const files = { count: 1, bytes: blob_bytes, missing: 0 }
    const manifest = { blobs: files, inbound_blobs: { ...files, bytes: 0 } }
    return { size: 100_000, manifest } as Parameters<typeof requireRoom>[1]
  }
  expect(await requireRoom(here, archive(50_000))).toBeUndefined()
  expect(await requireRoom(elsewhere, archive(0))).toBeUndefined()
  const refused = requireRoom(elsewhere, archive(50_000))
  await expect(refused).rejects.toThrow(NoRoomForRestore)
  await expect(refused).rejects.toThrow("/proc/self has 0 MB of free space")
})
