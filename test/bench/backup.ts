import { Database } from "bun:sqlite"
import { closeSync, fsyncSync, openSync, rmSync } from "node:fs"
import { join } from "node:path"
import { binary } from "../harness/binary"
import { atMost, type Bench, median, ratioOf, series } from "./bench"
import { filled } from "./growth"
import { oneMail } from "./mail"
import { residentMegabytes } from "./memory"
import { add, sending } from "./retention"
import { scratchFolder } from "./scratch"
import { databaseOf, serve } from "./serving"

const MESSAGES = 1_000_000
const QUICK_MESSAGES = 100_000
const FROM = "bench@mailbox.test"
const WARM_MS = 5000
const LONGEST_S = 30
const LOOK_MS = 20

export const backup: Bench = {
  name: "backup",
  title: "a backup beside a server that accepts 500 a second, against a bare `VACUUM INTO`",

  async run({ rounds, seconds }) {
    const size = rounds <= 2 ? QUICK_MESSAGES : MESSAGES
    const measured_ms = Math.min(seconds * 4, LONGEST_S) * 1000
    const bare = series("VACUUM INTO, fsync and quick_check, bare", "s")
    const ours = series("backup create, no server", "s")
    const grown = series("memory of the server, most while backups run over before", "MB")
    const before = { p50: series("p50 before", "ms"), p99: series("p99 before", "ms") }
    const during = {
      p50: series("p50 while backups run", "ms"),
      p99: series("p99 while backups run", "ms"),
    }
    using folder = scratchFolder()
    const key = await filled(folder.path, size)
    for (let round = 0; round < rounds; round++) {
      bare.values.push(bareCopy(folder.path))
      ours.values.push(await created(folder.path))
      await using server = await serve(folder.path, key)
      const body = await Bun.file(oneMail(folder.path, FROM)).text()
      await sending(server, body, WARM_MS)
      add(before, await sending(server, body, measured_ms))
      const idle_mb = residentMegabytes(server.pid)
      const working = backupsUntil(performance.now() + measured_ms, folder.path, server.pid)
      add(during, await sending(server, body, measured_ms))
      grown.values.push((await working) - idle_mb)
      await server.stop()
    }
    return {
      series: [bare, ours, before.p50, before.p99, during.p50, during.p99, grown],
      verdicts: [
        atMost("backup to a bare copy", ratioOf(ours, bare), 3, "×"),
        atMost("accept p99", ratioOf(during.p99, before.p99), 2, "×"),
        atMost("memory", median(grown.values), 64, "MB"),
      ],
      notes: [
        `${size.toLocaleString("en")} messages with content, sent bytes, attempt and events. The bare copy is one connection of bun:sqlite. The time of ours is that of the whole command: start, copy, check, pack, sync. Beside the server one backup follows the other.`,
      ],
    }
  },
}

function bareCopy(folder: string): number {
  const to = join(folder, "bare.db")
  const begun = performance.now()
  {
    using source = databaseOf(folder)
    source.run("VACUUM INTO ?", [to])
  }
  const file = openSync(to, "r+")
  fsyncSync(file)
  closeSync(file)
  {
    using copy = new Database(to, { readonly: true })
    const [line] = copy.query("PRAGMA quick_check").values()[0] ?? []
    if (line !== "ok") throw new Error(`quick_check: ${line}`)
  }
  const took = (performance.now() - begun) / 1000
  rmSync(to)
  return took
}

async function created(folder: string): Promise<number> {
  const begun = performance.now()
  const words = ["backup", "create", "--data-dir", join(folder, "data"), "--set", "backup.keep=1"]
  const child = Bun.spawn({
    cmd: [binary, ...words, "--set", "storage.min_free_mb=0"],
    env: { PATH: process.env.PATH, HOME: folder },
    stdout: "ignore",
    stderr: "pipe",
  })
  const [text, code] = await Promise.all([child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(text)
  return (performance.now() - begun) / 1000
}

/** One after the other. Returns the most that the server had in memory meanwhile. */
async function backupsUntil(end: number, folder: string, pid: number): Promise<number> {
  let most = 0
  let is_over = false
  const looking = (async () => {
    while (!is_over) {
      most = Math.max(most, residentMegabytes(pid))
      await Bun.sleep(LOOK_MS)
    }
  })()
  do await created(folder)
  while (performance.now() < end)
  is_over = true
  await looking
  return most
}
