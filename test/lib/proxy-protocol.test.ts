import { expect, test } from "bun:test"
import { readProxyHeader } from "../../src/lib/proxy-protocol"

const SIGNATURE = "0d0a0d0a000d0a515549540a"
const read = (text: string) => readProxyHeader(Buffer.from(text, "latin1"))
const v2 = (hex: string) => readProxyHeader(Buffer.from(`${SIGNATURE}${hex}`, "hex"))

test("version 1 names the client", () => {
  const line = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 25\r\n"
  const client = { address: "192.0.2.7", port: 56_324 }
  expect(read(line)).toEqual({ state: "done", length: line.length, client })
  expect(read(`${line}EHLO x\r\n`)).toEqual({ state: "done", length: line.length, client })
  expect(read("PROXY TCP6 2001:db8::7 2001:db8::1 1 25\r\n")).toMatchObject({
    client: { address: "2001:db8::7" },
  })
  expect(read("PROXY TCP6 ::ffff:192.0.2.7 ::1 1 25\r\n")).toMatchObject({
    client: { address: "192.0.2.7" },
  })
  expect(read("PROXY UNKNOWN\r\n")).toEqual({ state: "done", length: 15, client: undefined })
  expect(read("PROXY UNKNOWN a b 1 2\r\n")).toMatchObject({ state: "done", client: undefined })
})

test("a header that is not complete needs more, byte by byte", () => {
  const line = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 25\r\n"
  for (let size = 0; size < line.length; size += 1) {
    expect(read(line.slice(0, size))).toEqual({ state: "more" })
  }
  const whole = Buffer.from(`${SIGNATURE}2111000cc0000207c6336401dc040019`, "hex")
  for (let size = 0; size < whole.length; size += 1) {
    expect(readProxyHeader(whole.subarray(0, size))).toEqual({ state: "more" })
  }
})

test("what is no header of version 1 is refused", () => {
  const wrong = [
    "EHLO me.test\r\n",
    "PROXX",
    "\r\n\r\nX",
    "PROXY TCP4 192.0.2.7 198.51.100.1 56324\r\n",
    "PROXY TCP4 192.0.2.7 198.51.100.1 56324 25 26\r\n",
    "PROXY TCP4 192.0.2.7 198.51.100.1 99999 25\r\n",
    "PROXY TCP4 192.0.2.7 198.51.100.1 -1 25\r\n",
    "PROXY TCP4 127.1 198.51.100.1 1 25\r\n",
    "PROXY TCP4 2001:db8::7 198.51.100.1 1 25\r\n",
    "PROXY TCP6 192.0.2.7 198.51.100.1 1 25\r\n",
    "PROXY UDP4 192.0.2.7 198.51.100.1 1 25\r\n",
    "PROXY TCP4 evil\0.test 198.51.100.1 1 25\r\n",
    `PROXY TCP4 ${"1".repeat(200)}`,
  ]
  for (const line of wrong) expect([line, read(line).state]).toEqual([line, "bad"])
})

test("version 2 names the client, with extensions and without", () => {
  const plain = v2("2111000cc0000207c6336401dc040019")
  expect(plain).toEqual({
    state: "done",
    length: 28,
    client: { address: "192.0.2.7", port: 56_324 },
  })
  const extended = v2("21110010c0000207c6336401dc04001904000100")
  expect(extended).toMatchObject({ length: 32, client: { address: "192.0.2.7" } })
  const six = v2(`21210024${"20010db8000000000000000000000007".repeat(2)}00190019`)
  expect(six).toMatchObject({ length: 52, client: { address: "2001:db8::7", port: 25 } })
  expect(v2("20000000")).toEqual({ state: "done", length: 16, client: undefined })
  expect(v2("21000000")).toMatchObject({ state: "done", client: undefined })
})

test("what is no header of version 2 is refused", () => {
  expect(v2("1111000c")).toMatchObject({ state: "bad" }) // version 1 in the binary form
  expect(v2("2211000c")).toMatchObject({ state: "bad" }) // unknown command
  expect(v2(`21110004${"c0000207"}`)).toMatchObject({ state: "bad" }) // too short
  expect(v2("2112000cc0000207c6336401dc040019")).toMatchObject({ state: "bad" }) // UDP
  expect(v2("2111ffff")).toMatchObject({ state: "bad" }) // endless
})
