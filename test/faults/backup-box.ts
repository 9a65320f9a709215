import { Database } from "bun:sqlite"
import { randomBytes } from "node:crypto"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { binary, folders, makeHome, type Options, runBinary } from "../harness/binary"
import { leftover } from "../harness/leftovers"

/** Values that take long enough to be copied. Nothing else looks at them. */
export function enlarge(data_dir: string, megabytes: number) {
  using database = new Database(join(data_dir, "belfry.db"))
  for (let at = 0; at < megabytes; at++) {
    const row = [`large ${at}`, randomBytes(512 * 1024).toString("hex")]
    database.run("INSERT INTO instance_values (name, value) VALUES (?, ?)", row)
  }
}

interface BoxOptions {
  /** Default: a folder of its own on the disk of the tests. */
  data_dir?: string
  megabytes?: number
  keep: number
}

/** A data folder with a database, and commands that make backups of it. */
export async function backupBox({ megabytes = 0, keep, ...options }: BoxOptions) {
  const home = leftover(makeHome())
  const data_dir = options.data_dir ?? join(home, "belfry")
  const backups = join(data_dir, "backups")
  const set = ["--set", "storage.min_free_mb=0", "--set", `backup.keep=${keep}`]
  const rest = ["--data-dir", data_dir, ...set]
  const run = (words: string[], more: Options = {}) =>
    runBinary([...words, ...rest], { home, ...more })
  const made = await run(["init"])
  if (made.code !== 0) throw new Error(made.stderr)
  enlarge(data_dir, megabytes)
  const names = (ending: string) =>
    existsSync(backups) ? readdirSync(backups).filter((name) => name.endsWith(ending)) : []
  return {
    ...{ home, data_dir, backups, run },
    archives: () => names(".tar"),
    drafts: () => [...names(".draft"), ...names(".draft-journal")],
    /** The bytes of each archive. */
    hashes: () =>
      new Map(names(".tar").map((name) => [name, Bun.hash(readFileSync(join(backups, name)))])),
    /** A backup that goes on by itself. */
    begin: () =>
      Bun.spawn({
        cmd: [binary, "backup", "create", ...rest],
        env: folders(home),
        ...{ stdin: "ignore", stdout: "ignore", stderr: "pipe" },
      }),
  }
}

export type BackupBox = Awaited<ReturnType<typeof backupBox>>

/**
 * Whether the process checks the copy of the database now: SQLite has locked the copy, the database itself is
 * closed, and no archive is begun.
 */
export function isChecking(pid: number, { drafts }: Pick<BackupBox, "drafts">): boolean {
  if (drafts().some((name) => name.endsWith(".tar.draft"))) return false
  const open = openFiles(pid)
  if (open.some(({ path }) => path.endsWith("/belfry.db"))) return false
  return open.some(({ path, has_lock }) => path.endsWith(".db.draft") && has_lock)
}

function openFiles(pid: number): { path: string; has_lock: boolean }[] {
  const place = `/proc/${pid}`
  try {
    return readdirSync(`${place}/fd`).flatMap((fd) => {
      try {
        const path = readlinkSync(`${place}/fd/${fd}`)
        const has_lock = /^lock:/m.test(readFileSync(`${place}/fdinfo/${fd}`, "utf8"))
        return [{ path, has_lock }]
      } catch {
        return [] // closed meanwhile
      }
    })
  } catch {
    return [] // the process has ended
  }
}
