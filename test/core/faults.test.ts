import { expect, test } from "bun:test"
import { codeOf, troubleOf } from "../../src/core/faults"

const coded = (code: string, more: object = {}) => Object.assign(new Error(code), { code, ...more })

test.each([
  "SQLITE_FULL",
  "SQLITE_IOERR",
  "SQLITE_IOERR_WRITE",
  "SQLITE_READONLY_DBMOVED",
  "SQLITE_CANTOPEN",
  "ENOSPC",
  "EDQUOT",
  "EFBIG",
  "EROFS",
  "EIO",
])("%s is the storage's fault, and may pass", (code) => {
  expect(troubleOf(coded(code))).toBe("unwritable")
  expect(troubleOf(new Error("a query failed", { cause: coded(code) }))).toBe("unwritable")
})

test.each(["EMFILE", "ENFILE"])("%s is a want of descriptors, and not the disk's fault", (code) => {
  expect(troubleOf(coded(code))).toBe("descriptors")
})

test("a failed fsync is final", () => {
  expect(troubleOf(coded("SQLITE_IOERR_FSYNC"))).toBe("lost_fsync")
  expect(troubleOf(coded("SQLITE_IOERR_DIR_FSYNC"))).toBe("lost_fsync")
  expect(troubleOf(coded("EIO", { syscall: "fsync" }))).toBe("lost_fsync")
})

test.each(["SQLITE_CORRUPT", "SQLITE_CORRUPT_INDEX", "SQLITE_NOTADB"])(
  "%s says that the file itself is damaged",
  (code) => {
    expect(troubleOf(coded(code))).toBe("damaged")
    expect(troubleOf(new Error("a query failed", { cause: coded(code) }))).toBe("damaged")
  },
)

test("a SQLite error that carries only its number counts as well", () => {
  const numbered = (errno: number) => Object.assign(new Error("x"), { name: "SQLiteError", errno })
  expect(troubleOf(numbered(778))).toBe("unwritable")
  expect(troubleOf(numbered(1034))).toBe("lost_fsync")
  expect(troubleOf(numbered(11))).toBe("damaged")
  expect(troubleOf(numbered(26))).toBe("damaged")
  expect(troubleOf(numbered(1555))).toBeUndefined()
})

test.each([
  ["a constraint", coded("SQLITE_CONSTRAINT_UNIQUE")],
  ["a missing file", coded("ENOENT")],
  ["a broken connection", coded("ECONNRESET", { errno: -13 })],
  ["an error of ours", new Error("ours")],
  ["a text", "SQLITE_FULL"],
  ["nothing", undefined],
])("%s is not the storage's fault", (_, error) => expect(troubleOf(error)).toBeUndefined())

test("codeOf reads only texts of errors", () => {
  expect(codeOf(coded("ENOENT"))).toBe("ENOENT")
  expect(codeOf(Object.assign(new Error("x"), { code: 5 }))).toBeUndefined()
  expect(codeOf({ code: "ENOENT" })).toBeUndefined()
})
