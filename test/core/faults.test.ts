import { expect, test } from "bun:test"
import { codeOf, faultOf } from "../../src/core/faults"

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
  expect(faultOf(coded(code))).toBe("unwritable")
  expect(faultOf(new Error("a query failed", { cause: coded(code) }))).toBe("unwritable")
})

test.each(["EMFILE", "ENFILE"])("%s is a want of descriptors, and not the disk's fault", (code) => {
  expect(faultOf(coded(code))).toBe("descriptors")
})

test("a failed fsync is final", () => {
  expect(faultOf(coded("SQLITE_IOERR_FSYNC"))).toBe("lost_fsync")
  expect(faultOf(coded("SQLITE_IOERR_DIR_FSYNC"))).toBe("lost_fsync")
  expect(faultOf(coded("EIO", { syscall: "fsync" }))).toBe("lost_fsync")
})

test.each(["SQLITE_CORRUPT", "SQLITE_CORRUPT_INDEX", "SQLITE_NOTADB"])(
  "%s says that the file itself is damaged",
  (code) => {
    expect(faultOf(coded(code))).toBe("damaged")
    expect(faultOf(new Error("a query failed", { cause: coded(code) }))).toBe("damaged")
  },
)

test("a SQLite error that carries only its number counts as well", () => {
  const numbered = (errno: number) => Object.assign(new Error("x"), { name: "SQLiteError", errno })
  expect(faultOf(numbered(778))).toBe("unwritable")
  expect(faultOf(numbered(1034))).toBe("lost_fsync")
  expect(faultOf(numbered(11))).toBe("damaged")
  expect(faultOf(numbered(26))).toBe("damaged")
  expect(faultOf(numbered(1555))).toBeUndefined()
})

test.each([
  ["a constraint", coded("SQLITE_CONSTRAINT_UNIQUE")],
  ["a missing file", coded("ENOENT")],
  ["a broken connection", coded("ECONNRESET", { errno: -13 })],
  ["an error of ours", new Error("ours")],
  ["a text", "SQLITE_FULL"],
  ["nothing", undefined],
])("%s is not the storage's fault", (_, error) => expect(faultOf(error)).toBeUndefined())

test("codeOf reads only texts of errors", () => {
  expect(codeOf(coded("ENOENT"))).toBe("ENOENT")
  expect(codeOf(Object.assign(new Error("x"), { code: 5 }))).toBeUndefined()
  expect(codeOf({ code: "ENOENT" })).toBeUndefined()
})
