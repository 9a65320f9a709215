import { expect, test } from "bun:test"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { exits, Failure } from "../../cli/lib/errors"
import { enterMigration, enterUpgrade } from "../../cli/local/upgrade-entry"
import { beginReturn, lockUpgrade } from "../../src/operations/upgrade/exchange"
import {
  makeUpgradeFolder,
  probationOf,
  removeJournal,
  type UpgradeJournal,
  upgradeFolder,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import { noteStaged, releaseFile, trialFolder } from "../../src/operations/upgrade/trial-files"
import { start } from "../../src/server"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"
import { ownServer } from "./own-server"

quietLog()

const BEGUN: UpgradeJournal = {
  ...{ format: 1, id: "1", step: "stopping", from_version: "1.0.0", to_version: "2.0.0" },
  ...{ program: "/bin/old", staged: "/bin/new", kept: "/bin/kept", keeps_database: true },
  ...{ server: null, is_supervised: false },
}

test("a server accepts nothing where an upgrade began while it started, and can be found before", async () => {
  const { data_dir, loaded, url } = await ownServer()
  const entry = await enterUpgrade(loaded)
  const seen: unknown[] = []
  const demandTurn = async () => {
    const reply = await fetch(`${url}/readyz`)
    seen.push(reply.status, existsSync(join(data_dir, "admin.sock")))
    await entry.demandTurn?.() // no upgrade yet
    writeJournal(data_dir, BEGUN)
    await entry.demandTurn?.()
  }
  const started = start({ loaded, mode: "serve", begin: "if_new", ...entry, demandTurn })
  const end = await started.catch((error: Error) => error.message)
  expect(end).toContain("An upgrade of this data folder has begun")
  expect(seen).toEqual([503, true])
})

test("a server that starts ends what an upgrade left that was killed in its trial, and nothing else", async () => {
  const { data_dir, loaded } = await ownServer()
  const staged = join(data_dir, "belfry.new")
  const running = (folder: string) =>
    Bun.spawn(["sh", "-c", "sleep 60", "name", "--data-dir", folder])
  mkdirSync(trialFolder(data_dir), { recursive: true })
  for (const path of [releaseFile(data_dir), staged]) writeFileSync(path, "")
  noteStaged(data_dir, staged)
  const [trial, other] = [running(trialFolder(data_dir)), running(data_dir)]
  try {
    const release = lockUpgrade(data_dir)
    await enterUpgrade(loaded)
    expect([existsSync(staged), trial.exitCode]).toEqual([true, null]) // an upgrade runs
    release?.()
    await enterUpgrade(loaded)
    await trial.exited
    expect(other.exitCode ?? other.signalCode).toBeNull()
    expect([existsSync(staged), readdirSync(upgradeFolder(data_dir)).toSorted()]).toEqual([
      false,
      ["running.lock", "running.pid"],
    ])
  } finally {
    for (const child of [trial, other]) child.kill("SIGKILL")
  }
})

test("the new version migrates for the upgrade that waits for it, and after its end for none", () => {
  const data_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-migration-")))
  makeUpgradeFolder(data_dir)
  const enter = (id = "1") => {
    try {
      enterMigration(data_dir, id)
      return probationOf(data_dir)
    } catch (error) {
      return error instanceof Failure ? [error.code, error.exit, probationOf(data_dir)] : error
    }
  }
  const refused = ["upgrading", exits.try_later, undefined]
  expect(enter()).toEqual(refused)
  const changing: UpgradeJournal = { ...BEGUN, step: "changing" }
  writeJournal(data_dir, changing)
  expect(enter("2")).toEqual(refused)
  expect(beginReturn(data_dir, changing).step).toBe("returning")
  expect(enter()).toEqual(refused)
  writeJournal(data_dir, changing)
  expect(enter()).toBe(process.pid)
  removeJournal(data_dir)
})
