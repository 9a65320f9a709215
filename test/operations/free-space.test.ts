import { expect, test } from "bun:test"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadSettings } from "../../src/core/config"
import { type SpaceNeed, spaceFault } from "../../src/operations/free-space"

const TERABYTE = 2 ** 40
const dir = join(tmpdir(), "is/not/there")

function fault(min_free_mb: number, ...needs: SpaceNeed[]) {
  const flags = { data_dir: join(tmpdir(), "data"), "storage.min_free_mb": min_free_mb }
  return spaceFault(loadSettings({ environment: {}, flags }).values, needs, "the upgrade")
}

test("what needs more space than there is above the floor of the disk is told before it begins", async () => {
  expect(await fault(0, { dir, bytes: 1 })).toBeUndefined()
  const told = await fault(0, { dir, bytes: 2 ** 60 })
  expect(told).toMatch(/ has \d+ MB of free space, but the upgrade needs 1099511627776 MB\.$/)
  expect(await fault(10_000_000, { dir, bytes: 1 })).toContain("needs 10000001 MB")
})

test("needs of one disk are added up, and another disk than that of the server has no floor", async () => {
  const beside = { dir: join(tmpdir(), "beside"), bytes: 512 * TERABYTE }
  expect(await fault(0, { dir, bytes: 512 * TERABYTE }, beside)).toContain("needs 1073741824 MB")
  const elsewhere = { dir: "/proc/self", bytes: 0 } // a disk of its own, without a free byte
  expect(await fault(0, elsewhere)).toBeUndefined()
  expect(await fault(10_000_000, elsewhere)).toBeUndefined()
  expect(await fault(0, { ...elsewhere, bytes: 1 })).toContain("/proc/self has 0 MB")
})
