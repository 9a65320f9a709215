import { afterEach, beforeEach, expect, test } from "bun:test"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BLOCK_BYTES, paddingOf, TAR_END, tarHeader } from "../../../src/lib/ustar"
import { ArchiveError } from "../../../src/operations/backup/archive-cursor"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { sizes } from "../../harness/sizes"
import { archiveIn, contentIn, sha256 } from "./archives"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-archive-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const faultOf = async (path: string, act: (path: string) => Promise<unknown>) => {
  try {
    await act(path)
    return "none"
  } catch (error) {
    if (error instanceof ArchiveError) return error.fault
    throw error
  }
}

const checked = async (path: string) => (await openArchive(path)).check()

const withBlobs = () =>
  contentIn(folder, { blobs: ["one", "two", ""], "inbound-blobs": ["received"] })

test("an archive gives back what was put in", async () => {
  const path = await archiveIn(folder, withBlobs())
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const archive = await openArchive(path)
  expect(archive.manifest).toMatchObject({
    format: 1,
    rows: { birds: 3 },
    blobs: { count: 3, bytes: 6, missing: 0 },
    inbound_blobs: { count: 1, bytes: 8, missing: 0 },
  })
  expect(archive.size).toBe(statSync(path).size)
  const target = join(folder, "target")
  await archive.extract({ folder: target })
  expect(readFileSync(join(target, "database.db"))).toEqual(readFileSync(join(folder, "copied.db")))
  expect(JSON.parse(readFileSync(join(target, "config.json"), "utf8"))).toEqual({
    "log.level": "info",
  })
  const hash = sha256("two")
  expect(readFileSync(join(target, "blobs", hash.slice(0, 2), hash), "utf8")).toBe("two")
  const received = sha256("received")
  const file = join(target, "blobs", "inbound", received.slice(0, 2), received)
  expect(readFileSync(file, "utf8")).toBe("received")
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test("the tar of the system reads it, and its last entry is the hash of all before", async () => {
  const path = await archiveIn(folder, withBlobs())
  const listed = Bun.spawnSync(["tar", "-tf", path]).stdout.toString().trim().split("\n")
  expect(listed).toHaveLength(8)
  expect(listed[0]).toBe("database.db")
  expect(listed.slice(-3)).toEqual(["config.json", "manifest.json", "SHA256"])
  const bytes = readFileSync(path)
  const tail = BLOCK_BYTES + BLOCK_BYTES + TAR_END.length
  const sum = Bun.spawnSync(["tar", "-xOf", path, "SHA256"]).stdout.toString()
  expect(sum).toBe(`${sha256(bytes.subarray(0, bytes.length - tail))}\n`)
})

test("a blob whose file is gone is counted, and the archive is whole without it", async () => {
  const content = withBlobs()
  rmSync([...content.blobs][1]?.path ?? "")
  const archive = await openArchive(await archiveIn(folder, content))
  expect(archive.manifest.blobs).toMatchObject({ count: 2, missing: 1 })
  await archive.check()
})

test("a blob whose content has changed on the disk is left out, and the archive can be used", async () => {
  const content = withBlobs()
  const damaged = [...content.blobs].find(({ sha256: hash }) => hash === sha256("two"))
  writeFileSync(damaged?.path ?? "", "tvo")
  const archive = await openArchive(await archiveIn(folder, content))
  expect(archive.manifest.blobs).toEqual({ count: 2, bytes: 3, missing: 1 })
  await archive.check()
})

test("one changed byte anywhere is found", async () => {
  const path = await archiveIn(folder, withBlobs())
  const bytes = readFileSync(path)
  const changed = join(folder, "changed.tar")
  for (let at = 0; at < bytes.length; at += sizes.changed_bytes) {
    const other = Buffer.from(bytes)
    other[at] = (other[at] ?? 0) ^ 0x20
    writeFileSync(changed, other)
    expect([at, await faultOf(changed, checked)]).not.toEqual([at, "none"])
  }
})

test("a file that is cut off says so, wherever it ends", async () => {
  const path = await archiveIn(folder, withBlobs())
  const bytes = readFileSync(path)
  const short = join(folder, "short.tar")
  for (let length = BLOCK_BYTES; length < bytes.length; length += BLOCK_BYTES / 2) {
    writeFileSync(short, bytes.subarray(0, length))
    expect([length, await faultOf(short, openArchive)]).toEqual([length, "truncated"])
  }
})

test("bytes behind the end are damage", async () => {
  const path = await archiveIn(folder)
  writeFileSync(path, Buffer.alloc(1), { flag: "a" })
  expect(await faultOf(path, openArchive)).toBe("damaged")
})

test("another file is told from a backup", async () => {
  const others = { empty: "", text: "hello", zeros: Buffer.alloc(4096), tar: headed("etc/passwd") }
  for (const [name, bytes] of Object.entries(others)) {
    const path = join(folder, name)
    writeFileSync(path, bytes)
    expect([name, await faultOf(path, openArchive)]).toEqual([name, "foreign"])
  }
})

test("a format of another version is told from damage", async () => {
  const content = contentIn(folder)
  Object.assign(content.manifest, { format: 2 })
  const path = await archiveIn(folder, content)
  const opened = openArchive(path)
  expect(opened).rejects.toThrow("its format is 2, and this version of belfry reads format 1")
  expect(await faultOf(path, () => opened)).toBe("other_format")
})

const headed = (name: string, content = "x") =>
  Buffer.concat([
    tarHeader({ name, size: content.length, modified: 1 }),
    Buffer.from(content),
    Buffer.alloc(paddingOf(content.length)),
  ])

test("no name leads out of the folder", async () => {
  const names = [
    "../outside",
    "/tmp/outside",
    "blobs/../../outside",
    `blobs/${"a".repeat(63)}`,
    `blobs/${"A".repeat(64)}`,
    `./blobs/${"a".repeat(64)}`,
    "blobs",
    "constructor",
    "master.key",
    "database.db",
    "config.json/",
  ]
  const target = join(folder, "in", "target")
  mkdirSync(join(folder, "in"))
  for (const name of names) {
    const path = join(folder, "trick.tar")
    const rest = [headed("config.json", "{}"), headed("manifest.json", "{}"), TAR_END]
    writeFileSync(path, Buffer.concat([headed("database.db"), headed(name), ...rest]))
    expect([name, await faultOf(path, openArchive)]).toEqual([name, "damaged"])
    expect(existsSync(target)).toBe(false)
  }
})

test("a link, a folder and a device are refused, whatever their names are", async () => {
  const blob = `blobs/${"a".repeat(64)}`
  for (const type of ["1", "2", "3", "5", "6", "L", "g"]) {
    const link = headed(blob)
    link.write(type, 156)
    link.write("/etc/passwd", 157)
    link.write("        ", 148)
    const sum = link.subarray(0, BLOCK_BYTES).reduce((total, byte) => total + byte, 0)
    link.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148)
    const path = join(folder, "link.tar")
    writeFileSync(path, Buffer.concat([headed("database.db"), link, TAR_END]))
    expect([type, await faultOf(path, openArchive)]).toEqual([type, "damaged"])
  }
})

test("an extraction never writes over a file", async () => {
  const archive = await openArchive(await archiveIn(folder))
  const target = join(folder, "target")
  mkdirSync(target)
  writeFileSync(join(target, "database.db"), "of somebody")
  expect(archive.extract({ folder: target })).rejects.toMatchObject({ code: "EEXIST" })
  expect(readFileSync(join(target, "database.db"), "utf8")).toBe("of somebody")
  expect(readdirSync(target)).toEqual(["database.db"])
})

test("reading tells how far it is, and ends when it is told to", async () => {
  const archive = await openArchive(await archiveIn(folder, withBlobs()))
  const heard: number[] = []
  await archive.check({ onBytes: (bytes) => heard.push(bytes) })
  expect(heard).toEqual([...heard].sort((one, other) => one - other))
  expect(heard.at(-1)).toBeLessThan(archive.size)
  const given_up = archive.check({ signal: AbortSignal.abort(new Error("given up")) })
  expect(given_up).rejects.toThrow("given up")
})
