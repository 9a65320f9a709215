import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openSecrets, SecretError } from "../../src/core/secrets"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-secrets-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const open = (master_key: string | null = null) => openSecrets({ data_dir: folder, master_key })

describe("the master key", () => {
  test("is made at the first start, for its owner only, and read at the next", () => {
    const sealed = open().seal("hello", "t:1:c")
    expect(statSync(join(folder, "master.key")).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder)).toEqual(["master.key"])
    expect(open().open(sealed, "t:1:c")).toBe("hello")
  })

  test("is made in a folder that is not there yet", () => {
    const data_dir = join(folder, "a", "b")
    openSecrets({ data_dir, master_key: null })
    expect(statSync(data_dir).mode & 0o777).toBe(0o700)
  })

  test.each([0o640, 0o604, 0o666])("is refused when others may read it (%o)", (mode) => {
    open()
    chmodSync(join(folder, "master.key"), mode)
    expect(() => open()).toThrow("chmod 600")
  })

  test.each(["", "short", Buffer.alloc(31).toString("base64"), "!".repeat(44)])(
    "is refused when it is %j, and never replaced",
    (text) => {
      const path = join(folder, "master.key")
      writeFileSync(path, text, { mode: 0o600 })
      expect(() => open()).toThrow("32 bytes")
      expect(readFileSync(path, "utf8")).toBe(text)
    },
  )

  test("of the settings wins, and no file is made", () => {
    const key = Buffer.alloc(32, 5).toString("base64")
    expect(open(key).key_id).toBe(open(key).key_id)
    expect(readdirSync(folder)).toEqual([])
    expect(open(Buffer.alloc(32, 6).toString("base64")).key_id).not.toBe(open(key).key_id)
  })
})

describe("a sealed text", () => {
  test("names its key and differs every time", () => {
    const secrets = open()
    const one = secrets.seal("pass wörd", "providers:1:password")
    expect(one).toMatch(new RegExp(`^v1\\.${secrets.key_id}\\.[A-Za-z0-9_-]+$`))
    expect(one).not.toBe(secrets.seal("pass wörd", "providers:1:password"))
    expect(secrets.open(one, "providers:1:password")).toBe("pass wörd")
    expect(secrets.open(secrets.seal("", "x"), "x")).toBe("")
  })

  test("opens in its own place only", () => {
    const secrets = open()
    const sealed = secrets.seal("hello", "a:1:c")
    expect(() => secrets.open(sealed, "a:2:c")).toThrow(SecretError)
  })

  test("does not open when any character was changed", () => {
    const secrets = open()
    const sealed = secrets.seal("hello", "a:1:c")
    for (let at = 0; at < sealed.length; at++) {
      const other = sealed[at] === "A" ? "B" : "A"
      const changed = sealed.slice(0, at) + other + sealed.slice(at + 1)
      expect(() => secrets.open(changed, "a:1:c")).toThrow(SecretError)
    }
  })

  test("of another key says so", () => {
    const sealed = open(Buffer.alloc(32, 1).toString("base64")).seal("x", "c")
    expect(() => open().open(sealed, "c")).toThrow("was encrypted with master key")
  })

  test.each(["", "x", "v1", "v1..", "v2.a.b", "v1.a.b.c"])("%j is none", (text) => {
    expect(() => open().open(text, "c")).toThrow(SecretError)
  })
})

test("a MAC depends on the purpose, the text and the key", () => {
  const secrets = open()
  const mac = secrets.mac("cursor", "text")
  expect(mac).toHaveLength(32)
  expect(secrets.mac("cursor", "text")).toEqual(mac)
  expect(secrets.mac("return path", "text")).not.toEqual(mac)
  expect(secrets.mac("cursor", "texu")).not.toEqual(mac)
  expect(open(Buffer.alloc(32, 1).toString("base64")).mac("cursor", "text")).not.toEqual(mac)
})

test("a next key that already lies at the usual place costs no older one its file", () => {
  const [older, used] = [1, 2].map((byte) => `${Buffer.alloc(32, byte).toString("base64")}\n`)
  const files = { "master.key.old": older, "master.key": used, "master.key.next": used }
  for (const [name, key = ""] of Object.entries(files))
    writeFileSync(join(folder, name), key, { mode: 0o600 })
  open().keys.settle()
  const left = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")])
  expect(Object.fromEntries(left)).toEqual({ "master.key.old": older, "master.key": used })
})
