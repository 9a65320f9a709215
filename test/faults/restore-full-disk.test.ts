import { afterAll, expect, test } from "bun:test"
import { readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { binary, folders, runBinary } from "../harness/binary"
import { note } from "../harness/peers"
import { backupBox } from "./backup-box"
import { smallDisk } from "./small-disk"

const LARGE_MB = 60
const disk = smallDisk(2 * LARGE_MB)
if (!disk) note("a restore onto a full disk: tmpfs may not be mounted here")
afterAll(() => disk?.[Symbol.dispose]())

/** Restores until the disk could be filled while less than half of the database is unpacked. */
async function filledMidway(words: string[], folder: string, home: string) {
  const unpacked = join(folder, "restoring/database.db")
  const size = () => statSync(unpacked, { throwIfNoEntry: false })?.size ?? 0
  for (;;) {
    const child = Bun.spawn({
      cmd: [binary, ...words],
      env: folders(home),
      ...{ stdin: "ignore", stdout: "ignore", stderr: "pipe" },
    })
    while (child.exitCode === null && size() === 0) await Bun.sleep(1)
    child.kill("SIGSTOP")
    const is_midway = size() > 0 && size() < (LARGE_MB / 2) * 1024 * 1024
    if (is_midway) disk?.fill(64 * 1024)
    child.kill(is_midway ? "SIGCONT" : "SIGKILL")
    const stderr = await child.stderr.text()
    const code = await child.exited
    if (is_midway) return { code, stderr }
    rmSync(folder, { recursive: true, force: true })
  }
}

test.skipIf(!disk)(
  "a restore whose disk becomes full leaves no data, and the next one works",
  async () => {
    const box = await backupBox({ keep: 1, megabytes: LARGE_MB })
    const made = await box.run(["backup", "create", "--json"])
    const { path } = JSON.parse(made.stdout) as { path: string }
    const folder = join(disk?.folder ?? "", "restored")
    const key = ["--master-key", join(box.data_dir, "master.key")]
    const place = ["--data-dir", folder, "--set", "storage.min_free_mb=0"]
    const words = ["restore", path, ...key, ...place]
    const { code, stderr } = await filledMidway(words, folder, box.home)
    expect([code, stderr]).toEqual([74, expect.stringContaining("no space left on device")])
    expect(readdirSync(folder).filter((name) => !/^belfry\.db\.(lock|pid)$/.test(name))).toEqual([])
    disk?.free()
    expect(await runBinary(words, { home: box.home })).toMatchObject({ code: 0 })
    expect(await runBinary(["db", "check", ...place], { home: box.home })).toMatchObject({
      code: 0,
    })
  },
)
