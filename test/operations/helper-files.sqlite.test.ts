import { expect, test } from "bun:test"
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { openCertificate } from "../../src/core/certificate"
import { openDisk } from "../../src/core/disk"
import { openSecrets } from "../../src/core/secrets"
import { AloneFirst, CrashGuard } from "../../src/jobs/crash-guard"
import { createBackup } from "../../src/operations/backup/create-backup"
import { raiseMark, whyPutBack } from "../../src/operations/database-mark"
import { claimFolders } from "../../src/operations/folder-owner"
import { probationOf, readJournal, readVerdict } from "../../src/operations/upgrade/journal"
import { lockFolder } from "../../src/store/database-file"
import { quietLog } from "../harness/quiet"
import { instance } from "./backup/instance"

quietLog()

type Box = Awaited<ReturnType<typeof instance>>

/** How each thing that may lie in the place of a helper file gets there. */
const IN_PLACE = {
  nothing: (path: string) => writeFileSync(path, ""),
  junk: (path: string) => writeFileSync(path, Buffer.alloc(4096, 0xa7)),
  folder: (path: string) => mkdirSync(path),
  pipe: (path: string) => void Bun.spawnSync(["mkfifo", path]),
}

type InPlace = keyof typeof IN_PLACE

/** Small files of an instance: who reads or writes each, and what they do not mind. */
const FILES: [file: string, use: (box: Box) => unknown, harmless: InPlace[]][] = [
  ["other.db.lock", ({ folder }) => lockFolder(join(folder, "other.db"))(), ["nothing"]],
  ["other.db.pid", ({ folder }) => lockFolder(join(folder, "other.db"))(), ["nothing", "junk"]],
  ["belfry-instance", ({ store, settings }) => claimFolders(store, settings), []],
  ["blobs/belfry-instance", ({ store, settings }) => claimFolders(store, settings), []],
  ["backups/belfry-instance", (box) => createBackup(box), []],
  ["backups/backup.lock", (box) => createBackup(box), ["nothing"]],
  ["database-mark", ({ store, folder }) => whyPutBack(store, folder), []],
  ["master.key", ({ folder: data_dir }) => openSecrets({ data_dir, master_key: null }), []],
  ["upgrade.json", ({ folder }) => readJournal(folder), []],
  ["upgrade-verdict", ({ folder }) => readVerdict(folder, "1"), ["nothing", "junk"]],
  ["upgrade/probation.pid", ({ folder }) => probationOf(folder), ["nothing", "junk"]],
  // These are made anew, or done without.
  ["slots", ({ folder }) => guardIn(join(folder, "slots")), all()],
  ["tls/key.pem", ({ folder }) => certificateIn(folder), ["nothing", "junk"]],
  [
    "database-mark.new",
    ({ store, folder }) => raiseMark(store, folder),
    ["nothing", "junk", "pipe"],
  ],
  ["ballast.draft", ({ folder }) => ballastIn(folder), all()],
]

function all() {
  return Object.keys(IN_PLACE) as InPlace[]
}

const guardIn = (path: string) => new CrashGuard(path, new AloneFirst()).close()
const certificateIn = (data_dir: string) =>
  openCertificate({ data_dir, host: "a.test", files: () => ({ cert: null, key: null }) }).close()

async function ballastIn(dir: string) {
  const disk = openDisk({ dir, min_free_mb: 0, ballast_mb: 1 })
  await disk.keepBallast()
  disk.close()
}

test.each(FILES)(
  "what lies in the place of %s is named with what to do, and never waited for",
  async (...row) => {
    const [file, use, harmless] = row
    await using box = await instance()
    const path = join(box.folder, file)
    mkdirSync(dirname(path), { recursive: true })
    for (const [kind, put] of Object.entries(IN_PLACE)) {
      rmSync(path, { recursive: true, force: true })
      put(path)
      if (kind !== "folder") chmodSync(path, 0o600)
      const error = await (async () => use(box))().catch((one: unknown) => one)
      if (harmless.includes(kind as InPlace)) {
        expect([kind, error instanceof Error]).toEqual([kind, false])
        continue
      }
      expect([kind, String(error)]).toEqual([kind, expect.stringContaining(path)])
      expect([kind, String(error)]).toEqual([
        kind,
        expect.stringMatching(/remove|move|put|directory/i),
      ])
      expect(String(error)).not.toMatch(/from a backup/)
    }
  },
)

test("a mark that is spoilt under a running server is written anew", async () => {
  await using box = await instance()
  await raiseMark(box.store, box.folder)
  writeFileSync(join(box.folder, "database-mark"), "junk")
  await raiseMark(box.store, box.folder)
  expect(await whyPutBack(box.store, box.folder)).toBeUndefined()
  expect(readdirSync(box.folder)).not.toContain("database-mark.new")
})
