import { expect, test } from "bun:test"
import { unpack } from "../../src/lib/compression"

const HEAD = Buffer.from("From: me@example.test\r\n\r\n")
const MAIL = Buffer.concat([HEAD, Buffer.from("<p>Your order has shipped.</p>\r\n".repeat(200))])
const FRAME = Bun.zstdCompressSync(MAIL)

test("what was packed comes back byte for byte, and what was not is read as it is", () => {
  expect(Buffer.compare(unpack(FRAME), MAIL)).toBe(0)
  expect(unpack(HEAD)).toBe(HEAD)
})
