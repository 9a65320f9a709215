import { expect, test } from "bun:test"
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { endUpgrade } from "../../../cli/local/upgrade-recovery"
import { loadSettings } from "../../../src/core/config"
import { exchangeProgram } from "../../../src/operations/upgrade/exchange"
import {
  makeUpgradeFolder,
  readJournal,
  type UpgradeJournal,
  writeJournal,
} from "../../../src/operations/upgrade/journal"
import { leftover } from "../../harness/leftovers"
import { quietLog } from "../../harness/quiet"

quietLog()

const MODULE = join(import.meta.dir, "../../../src/operations/upgrade/exchange.ts")

test("an old program that could be copied in part only is not kept: it would come back with an undone upgrade", async () => {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-exchange-")))
  // No link to the program can be made, and no file may grow beyond 64 KB.
  const journal = {
    program: "/proc/self/exe",
    staged: join(folder, "new"),
    kept: join(folder, "kept"),
  }
  const script = `
    const { exchangeProgram } = await import("${MODULE}")
    try { exchangeProgram(${JSON.stringify(journal)}) } catch (error) { console.log(error.code) }`
  const limited = ["sh", "-c", 'ulimit -f 128; exec "$@"', "sh"]
  const child = Bun.spawn([...limited, process.execPath, "-e", script], {
    stdout: "pipe",
    stderr: "pipe",
  })
  const [said, faults] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect([said.trim(), faults]).toEqual(["EFBIG", ""])
  expect(readdirSync(folder)).not.toContain("kept")
})

test("the version of before is started while the journal is there: a kill meanwhile leaves it to others", async () => {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-undo-")))
  const { values } = loadSettings({ environment: {}, flags: { data_dir } })
  makeUpgradeFolder(data_dir)
  const paths = {
    program: join(data_dir, "p"),
    staged: join(data_dir, "s"),
    kept: join(data_dir, "k"),
  }
  for (const path of [paths.program, paths.staged]) writeFileSync(path, path)
  for (const step of ["stopping", "changing"] as const) {
    const journal: UpgradeJournal = {
      ...{ format: 1, id: "1", step, from_version: "0.1.0", to_version: "0.2.0" },
      ...{ ...paths, keeps_database: false, server: null, is_supervised: false },
    }
    writeJournal(data_dir, journal)
    if (step === "changing") exchangeProgram(journal)
    const seen: (string | undefined)[] = []
    const startOld = () =>
      seen.push(readFileSync(paths.program, "utf8"), readJournal(data_dir)?.step)
    expect(await endUpgrade(values, journal, startOld)).toBe("undone")
    const expected = step === "changing" ? "returning" : step
    expect([seen, readJournal(data_dir)]).toEqual([[paths.program, expected], undefined])
    writeFileSync(paths.staged, paths.staged)
  }
})
