import { afterEach, beforeEach, expect, test } from "bun:test"
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openBlobs } from "../../src/core/blobs"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-blobs-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const hello = new TextEncoder().encode("hello")
const hello_hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

test("bytes are found again under their SHA-256, also after a restart", async () => {
  expect(await openBlobs(folder).put(hello)).toEqual({ sha256: hello_hash, size: 5 })
  const blobs = openBlobs(folder)
  expect(await Bun.file(blobs.path(hello_hash)).text()).toBe("hello")
  expect(new Uint8Array((await blobs.get(hello_hash)) ?? [])).toEqual(hello)
})

test("the same bytes many times at once are one file, and no draft is left", async () => {
  const blobs = openBlobs(folder)
  const all = await Promise.all(Array.from({ length: 20 }, () => blobs.put(hello)))
  expect(new Set(all.map(({ sha256 }) => sha256)).size).toBe(1)
  expect(readdirSync(join(folder, "2c"))).toEqual([hello_hash])
  expect(readdirSync(join(folder, "drafts"))).toEqual([])
})

test("no bytes are a blob, too", async () => {
  const blobs = openBlobs(folder)
  const { sha256 } = await blobs.put(new Uint8Array())
  expect(await blobs.get(sha256)).toHaveLength(0)
})

test("what is not there is undefined", async () => {
  expect(await openBlobs(folder).get("0".repeat(64))).toBeUndefined()
})

test.each(["../../etc/passwd", "", "A".repeat(64), `${hello_hash}/..`])(
  "%j is no name of a blob",
  (name) => expect(() => openBlobs(folder).path(name)).toThrow("64 hex digits"),
)

test("half a file that a crash left is put again, and old drafts are swept", async () => {
  const path = openBlobs(folder).path(hello_hash)
  writeFileSync(path, "hel")
  for (const name of ["old", "young"]) writeFileSync(join(folder, "drafts", name), "x")
  utimesSync(join(folder, "drafts", "old"), 1_000_000, 1_000_000)
  await openBlobs(folder).put(hello)
  expect(await Bun.file(path).text()).toBe("hello")
  expect(existsSync(join(folder, "drafts", "old"))).toBe(false)
  expect(existsSync(join(folder, "drafts", "young"))).toBe(true)
})

test("what nobody names any more is removed, but not what was put just now", async () => {
  const blobs = openBlobs(folder)
  const path = blobs.path(hello_hash)
  await blobs.put(hello)
  expect(await blobs.remove(hello_hash)).toBe(false)
  utimesSync(path, 1_000_000, 1_000_000)
  await blobs.put(hello) // named again: as young as a new one
  expect(await blobs.remove(hello_hash)).toBe(false)
  utimesSync(path, 1_000_000, 1_000_000)
  expect(await blobs.remove(hello_hash)).toBe(true)
  expect([existsSync(path), readdirSync(join(folder, "drafts"))]).toEqual([false, []])
  expect(await blobs.remove(hello_hash)).toBe(false)
  await blobs.put(hello)
  expect(existsSync(path)).toBe(true)
})

test("a file that is put while it is removed is there afterwards", async () => {
  const blobs = openBlobs(folder)
  const path = blobs.path(hello_hash)
  for (let round = 0; round < 50; round++) {
    await blobs.put(hello)
    utimesSync(path, 1_000_000, 1_000_000)
    await Promise.all([blobs.remove(hello_hash), blobs.put(hello), blobs.remove(hello_hash)])
    expect(existsSync(path)).toBe(true)
  }
})

test("a folder that does not take the bytes rejects", async () => {
  const blobs = openBlobs(folder)
  rmSync(folder, { recursive: true, force: true })
  expect(blobs.put(hello)).rejects.toThrow("ENOENT")
})
