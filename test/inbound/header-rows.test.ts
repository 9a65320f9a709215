import { expect, test } from "bun:test"
import { headerRows } from "../../src/inbound/header-rows"

const read = (text: string) => {
  const { rows, body_at, too_large } = headerRows(Buffer.from(text, "latin1"))
  const fields = rows.map(({ key, line }) => [key, line.toString("latin1")])
  return { fields, body: text.slice(body_at), too_large }
}

test("fields keep their bytes, and a folded one its lines", () => {
  expect(read("Subject:  a\r\n\tb \r\nTO : x\xe9\r\n\r\nbody\r\n")).toEqual({
    fields: [
      ["subject", "Subject:  a\r\n\tb "],
      ["to", "TO : x\xe9"],
    ],
    body: "body\r\n",
    too_large: false,
  })
})

test("a line that is no field belongs to the field before it", () => {
  expect(read("A: 1\r\nno field\r\n\xa0From: x\r\nB: 2\r\n\r\n").fields).toEqual([
    ["a", "A: 1\r\nno field\r\n\xa0From: x"],
    ["b", "B: 2"],
  ])
  expect(read("no field\r\nA: 1\r\n\r\n").fields).toEqual([
    ["", "no field"],
    ["a", "A: 1"],
  ])
})

test("a header may end with the mail, and a mail may have none", () => {
  expect(read("A: 1")).toEqual({ fields: [["a", "A: 1"]], body: "", too_large: false })
  expect(read("A: 1\r\n")).toEqual({ fields: [["a", "A: 1"]], body: "", too_large: false })
  expect(read("\r\nA: 1\r\n")).toEqual({ fields: [], body: "A: 1\r\n", too_large: false })
  expect(read("")).toEqual({ fields: [], body: "", too_large: false })
})

test("2,000 fields and 512 KB are read, and more are not", () => {
  const full = read(`${"A: 1\r\n".repeat(2_000)}\r\nbody`)
  expect(full).toMatchObject({ body: "body", too_large: false })
  expect(read(`${"A: 1\r\n".repeat(2_001)}\r\nbody`).too_large).toBe(true)
  expect(read(`A: ${"x".repeat(512 * 1024 - 3)}\r\n\r\nbody`).too_large).toBe(false)
  expect(read(`A: ${"x".repeat(512 * 1024)}\r\n\r\nbody`).too_large).toBe(true)
})
