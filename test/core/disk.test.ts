import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Disk, type DiskOptions, openDisk } from "../../src/core/disk"
import { recentLines } from "../../src/core/log"

let folder = ""
let disk: Disk | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-disk-"))
})
afterEach(() => {
  disk?.close()
  rmSync(folder, { recursive: true, force: true })
})

const full = Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" })
const ballast = () => join(folder, "ballast")

function open(options: Partial<DiskOptions> = {}): Disk {
  disk = openDisk({ dir: folder, min_free_mb: 0, ballast_mb: 0, ...options })
  return disk
}

async function until(what: () => boolean): Promise<void> {
  while (!what()) await Bun.sleep(20)
}

describe("the floor", () => {
  test("is low when less than it is free", () => {
    expect(open({ min_free_mb: 1_000_000_000 }).state()).toBe("low")
    expect(disk?.free_bytes()).toBeGreaterThan(0)
  })

  test("of 0 is switched off", () => {
    expect(open().state()).toBe("ok")
  })

  test("of a folder whose system does not tell is not low", () => {
    expect(open({ dir: join(folder, "gone"), min_free_mb: 1_000_000_000 }).state()).toBe("ok")
  })
})

describe("health", () => {
  test("an error of the storage makes it unhealthy, and a probe heals it", async () => {
    const opened = open()
    expect(opened.healthy()).toBe(true)
    expect(opened.failed(full)).toBe("unhealthy")
    expect(opened.healthy()).toBe(false)
    await until(opened.healthy)
    expect(readdirSync(folder)).toEqual([])
  })

  test("it stays unhealthy while the storage's own probe fails", async () => {
    let fails = 2
    const opened = open({ probe: () => (fails-- > 0 ? Promise.reject(full) : Promise.resolve()) })
    opened.failed(full)
    await until(opened.healthy)
    expect(fails).toBe(-1)
  })

  test("a damaged database is final, and told once", async () => {
    const bad = Object.assign(new Error("malformed"), { code: "SQLITE_CORRUPT" })
    const opened = open()
    expect(opened.isDamaged()).toBe(false)
    expect(opened.failed(bad)).toBe("damaged")
    expect(opened.failed(bad)).toBe("damaged")
    expect(await opened.damaged).toBe(bad)
    expect([opened.isDamaged(), opened.healthy()]).toEqual([true, false])
    const told = recentLines().filter((line) => line.includes("the database is damaged"))
    expect(told).toHaveLength(1)
    expect(told[0]).toContain("docs/operations.md")
  })

  test("other errors change nothing", () => {
    expect(open().failed(new Error("ours"))).toBeUndefined()
    expect(disk?.healthy()).toBe(true)
  })

  test("a database that lost one connection is not ill, one that stays away is", async () => {
    const gone = Object.assign(new Error("gone"), { errno: "57P01" })
    let away = false
    let asked = 0
    const probe = () => {
      asked += 1
      return away ? Promise.reject(gone) : Promise.resolve()
    }
    const opened = open({ probe })
    expect(opened.failed(gone)).toBe("doubtful")
    await until(() => asked > 0)
    await Bun.sleep(1)
    expect(opened.healthy()).toBe(true)

    away = true
    opened.failed(gone)
    await until(() => !opened.healthy())
    away = false
    await until(opened.healthy)
  })

  test("a failed fsync is final", async () => {
    const error = Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" })
    expect(open().failed(error)).toBe("dead")
    expect(await disk?.died).toBe(error)
    expect(disk?.healthy()).toBe(false)
  })
})

describe("the ballast", () => {
  test("is really allocated, kept over a restart, and given up at the first refusal", async () => {
    await open({ ballast_mb: 2 }).keepBallast()
    const made = statSync(ballast())
    expect(made.size).toBe(2 * 1024 * 1024)
    expect(made.blocks * 512).toBeGreaterThanOrEqual(made.size)
    disk?.close()
    await open({ ballast_mb: 2 }).keepBallast()
    expect(statSync(ballast()).ino).toBe(made.ino)
    expect(disk?.failed(full)).toBe("unhealthy")
    expect(existsSync(ballast())).toBe(false) // at once
  })

  test("is not left behind by a making that a full disk overtook", async () => {
    const opened = open({ ballast_mb: 16, probe: () => Promise.reject(full) })
    const made = opened.keepBallast()
    while (!existsSync(`${ballast()}.draft`)) await Bun.sleep(0)
    opened.failed(full)
    await made
    expect(readdirSync(folder)).toEqual([])
  })

  test("is dropped by a full disk, and made again when there is room", async () => {
    const opened = open({ ballast_mb: 1 })
    await opened.keepBallast()
    const { ino } = statSync(ballast())
    opened.failed(full)
    await until(() => existsSync(ballast()))
    expect(opened.healthy()).toBe(true)
    expect(ino).toBeGreaterThan(0)
  })

  test("is not made where it would bring the disk under the floor", async () => {
    await open({ ballast_mb: 1, min_free_mb: 1_000_000_000 }).keepBallast()
    expect(existsSync(ballast())).toBe(false)
  })

  test("of 0 is none", async () => {
    await open().keepBallast()
    expect(readdirSync(folder)).toEqual([])
  })
})

test("a file-size limit, of which statfs knows nothing, is survived", async () => {
  const source = JSON.stringify(join(import.meta.dir, "../../src/core/disk"))
  const code = `
    import { Database } from "bun:sqlite"
    import { openDisk } from ${source}
    const disk = openDisk({ dir: ${JSON.stringify(folder)}, min_free_mb: 1, ballast_mb: 8 })
    await disk.keepBallast()
    const db = new Database(${JSON.stringify(join(folder, "x.db"))})
    db.run("create table t (x blob)")
    let told = "nothing"
    try {
      for (let n = 0; n < 1000; n++) db.run("insert into t values (randomblob(10000))")
    } catch (error) {
      told = disk.failed(error) + " " + disk.healthy()
    }
    console.log(told)
    disk.close()`
  const shell = 'ulimit -f 2000; exec "$0" -e "$1"'
  const { stdout } = Bun.spawnSync(["sh", "-c", shell, process.execPath, code])
  expect(stdout.toString()).toBe("unhealthy false\n")
  expect(readdirSync(folder).filter((name) => name.startsWith("ballast"))).toEqual([])
})
