import { describe, expect, test } from "bun:test"
import { join } from "node:path"
import { note } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { type BackupBox, backupBox, isChecking } from "./backup-box"
import { smallDisk } from "./small-disk"
import { cannotTrace, strace, tampered } from "./tampered"

const KEEP = 2
const cannot_trace = cannotTrace("a backup that is killed at each step")

/** What a backup does for good. `calls` are system calls; with `path` only those on the folder itself. */
const STEPS = [
  { what: "the rename", calls: "rename,renameat,renameat2" },
  { what: "the sync of a file", calls: "fsync" },
  { what: "the sync of the folder", calls: "fsync", is_folder: true },
  { what: "the removal of a draft or of an old one", calls: "unlink,unlinkat" },
].slice(0, sizes.backup_kinds)

/** Two backups of a small database: the next one removes the older of them. */
async function twoBackups() {
  const box = await backupBox({ keep: KEEP })
  for (let at = 0; at < KEEP; at++) expect(await create(box)).toMatchObject({ code: 0 })
  return box
}

const create = ({ run }: BackupBox, wrap: string[] = []) => run(["backup", "create"], { wrap })

interface Listed {
  id: string
  path: string
  verified: boolean
}

const known_good = new Set<string>()

/** Each archive that is there is listed as whole, and verifies; a name that was there has the bytes of before. */
async function requireWhole(box: BackupBox, before: ReturnType<BackupBox["hashes"]>) {
  const listed = await box.run(["backup", "list", "--json"])
  const all = JSON.parse(listed.stdout) as Listed[]
  const hashes = box.hashes()
  expect(all.map(({ path }) => path.slice(box.backups.length + 1)).sort()).toEqual(
    [...hashes.keys()].sort(),
  )
  expect(all.filter(({ verified }) => !verified)).toEqual([])
  for (const { path } of all) {
    const name = path.slice(box.backups.length + 1)
    if (before.has(name)) expect([name, hashes.get(name)]).toEqual([name, before.get(name)])
    const bytes = `${name} ${hashes.get(name)}`
    if (known_good.has(bytes)) continue
    expect(await box.run(["backup", "verify", path])).toMatchObject({ code: 0 })
    known_good.add(bytes)
  }
  // Only a new archive takes the place of an old one.
  const gone = [...before.keys()].filter((name) => !hashes.has(name))
  const fresh = [...hashes.keys()].filter((name) => !before.has(name))
  expect(fresh.length).toBeGreaterThanOrEqual(gone.length)
  return fresh
}

/** The next backup works. No draft stays, and as many archives as are wanted. */
async function requireNext(box: BackupBox) {
  expect(await create(box)).toMatchObject({ code: 0 })
  expect([box.drafts(), box.archives().length]).toEqual([[], KEEP])
}

const pathOf = (box: BackupBox, { is_folder }: { is_folder?: boolean }) =>
  is_folder ? { path: box.backups } : {}

describe.skipIf(cannot_trace)("at each step of a backup", () => {
  test.each(STEPS)("kill -9 before $what leaves all archives whole", async (kind) => {
    const box = await twoBackups()
    let kills = 0
    for (let step = 1; ; step += sizes.backup_steps) {
      const before = box.hashes()
      const { calls } = kind
      const at = { calls, does: "signal=SIGKILL", step, ...pathOf(box, kind) }
      const { code } = await create(box, [strace, ...tampered(at)])
      await requireWhole(box, before)
      if (code === 0) break
      expect(code).toBe(137)
      kills++
      await requireNext(box)
    }
    expect(kills).toBeGreaterThan(0)
  })

  test.each(STEPS)("a full disk at $what is told, or the backup counts", async (kind) => {
    const box = await twoBackups()
    for (let step = 1; step <= sizes.backup_errors; step++) {
      const before = box.hashes()
      const { calls, what } = kind
      const at = { calls, does: "error=ENOSPC", step, ...pathOf(box, kind) }
      const { code, stderr } = await create(box, [strace, ...tampered(at)])
      const fresh = await requireWhole(box, before)
      // An archive that cannot be removed makes no backup fail.
      const is_removal = what.startsWith("the removal")
      if (step === 1 && !is_removal) expect([code, stderr]).toEqual([74, stderr])
      if (code === 0) expect(fresh).toHaveLength(1)
      else expect([code, stderr]).toEqual([74, expect.stringContaining(`"code":"storage"`)])
      await requireNext(box)
    }
  })
})

/** Begins backups until one of them was stopped while it checks its copy. */
async function stoppedInCheck(box: BackupBox) {
  for (;;) {
    const child = box.begin()
    while (child.exitCode === null && child.signalCode === null) {
      if (isChecking(child.pid, box)) {
        process.kill(child.pid, "SIGSTOP")
        if (isChecking(child.pid, box)) return child
        process.kill(child.pid, "SIGCONT")
      }
      await Bun.sleep(1)
    }
  }
}

const LARGE_MB = 24

test.skipIf(sizes.backup_kinds === 1)(
  "kill -9 at the check of the copy leaves all archives whole",
  async () => {
    const box = await backupBox({ keep: KEEP, megabytes: LARGE_MB })
    expect(await create(box)).toMatchObject({ code: 0 })
    const child = await stoppedInCheck(box)
    const before = box.hashes()
    child.kill("SIGKILL")
    await child.exited
    expect(box.drafts()).toHaveLength(1)
    expect(await requireWhole(box, before)).toEqual([])
    await requireNext(box)
  },
)

test("a disk that is full from the check on is told with its name and what is needed", async () => {
  using disk = smallDisk(200)
  if (!disk) return note("a backup on a full disk: tmpfs may not be mounted here")
  const data_dir = join(disk.folder, "belfry")
  const box = await backupBox({ data_dir, keep: KEEP, megabytes: LARGE_MB })
  expect(await create(box)).toMatchObject({ code: 0 })
  const child = await stoppedInCheck(box)
  const before = box.hashes()
  disk.fill(1024 * 1024)
  process.kill(child.pid, "SIGCONT")
  const stderr = await child.stderr.text()
  expect([await child.exited, stderr]).toEqual([
    74,
    expect.stringMatching(/backups has [01] MB of free space, but a backup needs \d+ MB/),
  ])
  expect(box.drafts()).toEqual([])
  disk.free() // a verification needs space
  expect(await requireWhole(box, before)).toEqual([])
  await requireNext(box)
})
