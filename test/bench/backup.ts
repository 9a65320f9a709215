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
const WARM_MS = 15_000
/** Until a server that started has nothing left to do. */
const REST_MS = 3000
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
    const at_rest = series("memory of a server at rest, most in a backup over before", "MB")
    const grown = series("memory beside sends, most while backups run over most before", "MB")
    const before = { p50: series("p50 before", "ms"), p99: series("p99 before", "ms") }
    const during = {
      p50: series("p50 while backups run", "ms"),
      p99: series("p99 while backups run", "ms"),
    }
    using folder = scratchFolder()
    const key = await filled(folder.path, size)
    for (let round = 0; round < rounds; round++)
      at_rest.values.push(await grownAtRest(folder.path, key))
    for (let round = 0; round < rounds; round++) {
      bare.values.push(bareCopy(folder.path))
      ours.values.push(await created(folder.path))
      await using server = await serve(folder.path, key)
      const body = await Bun.file(oneMail(folder.path, FROM)).text()
      await sending(server, body, WARM_MS)
      const alone = mostMegabytes(server.pid, Bun.sleep(measured_ms))
      add(before, await sending(server, body, measured_ms))
      const backups = backupsUntil(performance.now() + measured_ms, folder.path)
      const working = mostMegabytes(server.pid, backups)
      add(during, await sending(server, body, measured_ms))
      grown.values.push((await working) - (await alone))
      await server.stop()
    }
    return {
      series: [bare, ours, before.p50, before.p99, during.p50, during.p99, at_rest, grown],
      verdicts: [
        atMost("backup to a bare copy", ratioOf(ours, bare), 3, "×"),
        atMost("accept p99", ratioOf(during.p99, before.p99), 2, "×"),
        atMost("memory at rest", median(at_rest.values), 64, "MB"),
        atMost("memory beside sends", median(grown.values), 64, "MB"),
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

/** What one backup takes where nothing else runs: beside sends, the heap of those goes up and down by more. */
async function grownAtRest(folder: string, key: string): Promise<number> {
  await using server = await serve(folder, key)
  await Bun.sleep(REST_MS)
  const before = residentMegabytes(server.pid)
  const most = await mostMegabytes(server.pid, created(folder))
  await server.stop()
  return most - before
}

/** One after the other. */
async function backupsUntil(end: number, folder: string): Promise<void> {
  do await created(folder)
  while (performance.now() < end)
}

/** The most that the process has in memory until the work ends. */
async function mostMegabytes(pid: number, work: Promise<unknown>): Promise<number> {
  let most = 0
  let is_over = false
  const ended = work.finally(() => {
    is_over = true
  })
  while (!is_over) {
    most = Math.max(most, residentMegabytes(pid))
    await Bun.sleep(LOOK_MS)
  }
  await ended
  return most
}
