import { expect, test } from "bun:test"
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { endUpgrade, finishUpgrade } from "../../cli/local/upgrade-exchange"
import { loadSettings } from "../../src/core/config"
import {
  claimVerdict,
  forgetUpgrade,
  makeUpgradeFolder,
  readJournal,
  type UpgradeJournal,
  type UpgradeStep,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"

quietLog()

/** A folder with an old program and a new one, which takes its place where that is asked for. */
function begun(step: UpgradeStep, is_exchanged: boolean, kept_as = "p.previous") {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-end-")))
  const { values } = loadSettings({ environment: {}, flags: { data_dir } })
  makeUpgradeFolder(data_dir)
  const [program, staged, kept] = ["p", "p.new", kept_as].map((name) => join(data_dir, name))
  if (!program || !staged || !kept) throw new Error("no paths")
  writeFileSync(program, "old")
  writeFileSync(staged, "new")
  copyFileSync(program, kept)
  if (is_exchanged) renameSync(staged, program)
  const journal: UpgradeJournal = {
    ...{ format: 1, id: "1", step, from_version: "0.1.0", to_version: "0.2.0" },
    ...{ program, staged, kept, keeps_database: false },
  }
  writeJournal(data_dir, journal)
  const left = () => {
    const names = readdirSync(data_dir).filter((name) => name.startsWith("p"))
    const texts = names.map((name) => [name, readFileSync(join(data_dir, name), "utf8")])
    return [Object.fromEntries(texts), readJournal(data_dir)]
  }
  return { data_dir, values, journal, left }
}

test.each<[UpgradeStep, boolean]>([
  ["stopping", false],
  ["copying", false],
  ["changing", false],
  ["changing", true],
  ["starting", true],
  ["returning", false],
  ["returning", true],
])(
  "an upgrade that was cut off at %s (exchanged: %p) ends with the old program alone",
  async (step, is_exchanged) => {
    const { values, journal, left } = begun(step, is_exchanged)
    expect(await endUpgrade(values, journal)).toBe("undone")
    expect(left()).toEqual([{ p: "old" }, undefined])
    expect(await endUpgrade(values, { ...journal, step: "returning" })).toBe("undone") // as after a crash
    expect(left()).toEqual([{ p: "old" }, undefined])
  },
)

test("a version that accepts stays, with the old program beside it, also where an earlier version kept that", async () => {
  for (const kept_as of ["p.previous", "p.before-1"]) {
    const { data_dir, values, journal, left } = begun("starting", true, kept_as)
    expect(claimVerdict(data_dir, "1", "kept")).toBe("kept")
    expect(await endUpgrade(values, journal)).toBe("kept")
    expect(left()).toEqual([{ p: "new", "p.previous": "old" }, undefined])
    expect(existsSync(join(data_dir, "upgrade-verdict"))).toBe(false)
    await finishUpgrade(values, journal)
    expect(left()).toEqual([{ p: "new", "p.previous": "old" }, undefined])
  }
})

test("an archive that an earlier version fetched before it was killed goes with the next upgrade", () => {
  const { data_dir } = begun("stopping", false)
  const archive = join(data_dir, "upgrade", "fetched.tar.gz")
  writeFileSync(archive, "x")
  forgetUpgrade(data_dir)
  expect(existsSync(archive)).toBe(false)
})
