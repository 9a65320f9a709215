import { expect, test } from "bun:test"
import { faultOf } from "../../src/core/faults"
import { sqlState } from "../../src/store/postgres"

const fault = (fields: object) => Object.assign(new Error("fault"), fields)

test.each<[string, object, string | undefined]>([
  ["a full disk", { code: "SQLITE_FULL" }, "unwritable"],
  ["a write over the file-size limit", { code: "SQLITE_IOERR_WRITE" }, "unwritable"],
  ["a read-only file", { code: "SQLITE_READONLY" }, "unwritable"],
  ["a file that cannot be opened", { code: "SQLITE_CANTOPEN" }, "unwritable"],
  ["no space for a blob", { code: "ENOSPC" }, "unwritable"],
  ["a lost fsync", { code: "SQLITE_IOERR_FSYNC" }, "lost_fsync"],
  ["a lost fsync of the folder", { code: "SQLITE_IOERR_DIR_FSYNC" }, "lost_fsync"],
  ["a busy file", { code: "SQLITE_BUSY" }, "busy"],
  ["a full disk of Postgres", { errno: "53100" }, "away"],
  ["too many connections", { errno: "53300" }, "away"],
  ["a server that shuts down", { errno: "57P01" }, "away"],
  ["a standby", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "25006" }, "away"],
  ["a connection that was cut", { code: "ERR_POSTGRES_CONNECTION_CLOSED" }, "away"],
  ["a bad value", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "22P02" }, undefined],
  ["a full disk that drizzle wrapped", { cause: fault({ code: "SQLITE_FULL" }) }, "unwritable"],
  ["a row that exists", { code: "SQLITE_CONSTRAINT_PRIMARYKEY" }, undefined],
  ["a row that exists, on Postgres", { cause: fault({ errno: "23505" }) }, undefined],
  ["a mistake in a statement", { errno: "42703" }, undefined],
  ["a bug", {}, undefined],
])("%s says of the storage what it is", (_, fields, expected) => {
  expect(faultOf(fault(fields))).toBe(expected as ReturnType<typeof faultOf>)
})

test.each([undefined, null, "text", 7])("%p is no trouble of the storage", (value) => {
  expect(faultOf(value)).toBeUndefined()
})

test("the state of a Postgres error is found bare and wrapped", () => {
  expect(sqlState(fault({ errno: "40001" }))).toBe("40001")
  expect(sqlState(fault({ cause: fault({ errno: "40P01" }) }))).toBe("40P01")
  expect(sqlState(fault({}))).toBeUndefined()
})
