import { expect, test } from "bun:test"
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { restore } from "../../../src/operations/restore/restore"
import * as instanceValues from "../../../src/store/instance-values"
import { sqlitePath } from "../../../src/store/open"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { leftover } from "../../harness/leftovers"
import { program } from "../../harness/program"
import { quietLog } from "../../harness/quiet"
import { engine } from "../../harness/store"
import { original, target } from "./original"

quietLog()

const LARGE_MB = 16
const FILES = 30

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? -1

/** What a restore leaves behind as it goes on, in this order; and whether that is there. */
const steps: Record<string, (data_dir: string) => boolean> = {
  "the first bytes": (dir) => existsSync(join(dir, "restoring/database.db")),
  "half of the database": (dir) => sizeOf(join(dir, "restoring/database.db")) > LARGE_MB * 500_000,
  "all of the archive": (dir) => existsSync(join(dir, "restoring/manifest.json")),
  "what is open is held": (dir) => existsSync(join(dir, "restoring/database-mark")),
  "the key": (dir) => existsSync(join(dir, "master.key")),
  "the files": (dir) =>
    existsSync(join(dir, "blobs")) && readdirSync(join(dir, "blobs")).length > 1,
  "the papers": (dir) => existsSync(join(dir, "restored-manifest.json")),
}

/** An archive that takes some time, with its key. */
async function largeArchive() {
  const box = await original()
  const value = Buffer.alloc(512 * 1024, "belfry").toString("hex")
  await box.service.store.tx(async (tx) => {
    for (let at = 0; at < LARGE_MB; at++) await instanceValues.set(tx, `large ${at}`, value)
  })
  for (let at = 0; at < FILES; at++) {
    const content = Buffer.from(`attachment ${at}`).toString("base64")
    await box.send({ attachments: [{ filename: "a.txt", content }] })
  }
  return { box, path: await box.archive(), key: join(box.service.folder, "master.key") }
}

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => /[0-9a-f]{64}$/.test(name))

test("killed at any step, a restore leaves no database or a whole one, and can be made again", async () => {
  const { box, path, key } = await largeArchive()
  await using _ = box
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-killed-")))
  const killed: string[] = []
  for (const [step, isReached] of Object.entries(steps)) {
    await using place = await target(folder)
    const { settings } = place
    const { data_dir, database_url } = settings
    const words = ["--master-key", key, "--data-dir", data_dir, "--set", "storage.min_free_mb=0"]
    const child = Bun.spawn([...program, "restore", path, ...words], {
      env: {
        PATH: process.env.PATH ?? "",
        HOME: folder,
        ...(database_url && { DATABASE_URL: database_url }),
      },
      stdout: "ignore",
      stderr: "ignore",
    })
    while (child.exitCode === null && !isReached(data_dir)) await Bun.sleep(1)
    child.kill("SIGKILL")
    await child.exited
    if (child.signalCode === "SIGKILL") killed.push(step)

    const master_key = readFileSync(key, "utf8").trim()
    const parts = { settings, secrets: box.secrets, master_key, runs_on: ALLOWED_WHILE_HELD }
    const again = await restore(await openArchive(path), { ...parts, revoke_keys: false }).catch(
      (error) => error,
    )
    // It may have been over before it was killed.
    const expected = [{ held: { messages: FILES } }, { name: "TargetInUse" }]
    const was_over = again instanceof Error
    expect([step, again]).toMatchObject([step, expected[was_over ? 1 : 0]])
    const store = await place.open()
    expect(await instanceValues.find(store.read, `large ${LARGE_MB - 1}`)).toBeString()
    await store.close()
    expect([step, filesIn(join(data_dir, "blobs")).length]).toEqual([step, FILES])
    expect(readFileSync(join(data_dir, "master.key"), "utf8").trim()).toBe(master_key)
    if (!was_over) expect(existsSync(join(data_dir, "restoring"))).toBe(false)
    if (engine === "sqlite") expect(existsSync(sqlitePath(settings))).toBe(true)
  }
  expect(killed).toContain("half of the database")
})
