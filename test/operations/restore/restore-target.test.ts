import { expect, test } from "bun:test"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../../src/core/config"
import { roomFault } from "../../../src/operations/restore/restore-target"

test("what needs more room than there is above the floor of the disk is told before it begins", async () => {
  const fault = (min_free_mb: number, bytes: number) => {
    const flags = { data_dir: join(tmpdir(), "is/not/there"), "storage.min_free_mb": min_free_mb }
    return roomFault(loadSettings({ environment: {}, flags }).values, bytes, "the upgrade")
  }
  expect(await fault(0, 1)).toBeUndefined()
  expect(await fault(0, 2 ** 60)).toContain("but the upgrade needs 1099511627776 MB")
  expect(await fault(10_000_000, 2 ** 40)).toContain("but the upgrade needs")
})
