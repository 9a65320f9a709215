import { expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { guardUpgrade } from "../../cli/local/upgrade-guard"
import { loadSettings } from "../../src/core/config"
import { lockUpgrade } from "../../src/operations/upgrade/exchange"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"

const lines = quietLog()

test("what watches over an upgrade tries again where it cannot end it, however long the upgrade went on", async () => {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-guard-")))
  const { values } = loadSettings({ environment: {}, flags: { data_dir } })
  const clocks = { date: Date.now, monotonic: performance.now }
  const release = lockUpgrade(data_dir)
  const journal = join(data_dir, "upgrade.json")
  writeFileSync(journal, '{"format":0}')
  const guarded = guardUpgrade(values).catch((error: Error) => error.message)
  try {
    Date.now = () => clocks.date() + 3_600_000
    performance.now = () => clocks.monotonic.call(performance) + 3_600_000
    release?.()
    while (!lines().some((line) => line.includes("the upgrade cannot be ended yet"))) {
      const ended = await Promise.race([guarded, Bun.sleep(20)])
      expect(ended).toBeUndefined()
    }
    rmSync(journal)
    expect(await guarded).toBe(0)
  } finally {
    Date.now = clocks.date
    performance.now = clocks.monotonic
  }
})
