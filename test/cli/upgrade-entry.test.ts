import { expect, test } from "bun:test"
import { existsSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { exits, Failure } from "../../cli/lib/errors"
import { enterMigration, enterUpgrade } from "../../cli/local/upgrade-entry"
import {
  makeUpgradeFolder,
  probationOf,
  removeJournal,
  type UpgradeJournal,
  writeJournal,
} from "../../src/operations/upgrade/journal"
import { start } from "../../src/server"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"
import { ownServer } from "./own-server"

quietLog()

const BEGUN: UpgradeJournal = {
  ...{ format: 1, id: "1", step: "stopping", from_version: "1.0.0", to_version: "2.0.0" },
  ...{ program: "/bin/old", staged: "/bin/new", kept: "/bin/kept", keeps_database: true },
}

test("a server accepts nothing where an upgrade began while it started, and can be found before", async () => {
  const { data_dir, loaded, url } = await ownServer()
  const entry = await enterUpgrade(loaded)
  const seen: unknown[] = []
  const requireTurn = async () => {
    const reply = await fetch(`${url}/readyz`)
    seen.push(reply.status, existsSync(join(data_dir, "admin.sock")))
    await entry.requireTurn?.() // no upgrade yet
    writeJournal(data_dir, BEGUN)
    await entry.requireTurn?.()
  }
  const started = start({
    loaded,
    mode: "serve",
    begin: "if_new",
    ...entry,
    requireTurn: requireTurn,
  })
  const end = await started.catch((error: Error) => error.message)
  expect(end).toContain("An upgrade of this data folder is not over")
  expect(seen).toEqual([503, true])
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
  writeJournal(data_dir, { ...BEGUN, step: "returning" })
  expect(enter()).toEqual(refused)
  writeJournal(data_dir, changing)
  expect(enter()).toBe(process.pid)
  removeJournal(data_dir)
})
