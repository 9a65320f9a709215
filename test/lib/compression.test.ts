import { expect, test } from "bun:test"
import { pack, unpack } from "../../src/lib/compression"
import fc from "../harness/properties"

test("what was packed comes back byte for byte, and never takes more room", () => {
  const letters = fc.uint8Array({ maxLength: 5000 }).map((body) => Buffer.concat([HEAD, body]))
  fc.assert(
    fc.property(letters, (mail) => {
      const kept = pack(mail)
      expect(kept.length).toBeLessThanOrEqual(mail.length)
      expect(Buffer.compare(unpack(kept), mail)).toBe(0)
    }),
    { seed: 5, numRuns: 500 },
  )
})

test("mail of many like lines takes a tenth of its room", () => {
  const mail = Buffer.concat([HEAD, Buffer.from("<p>Your order has shipped.</p>\r\n".repeat(200))])
  expect(pack(mail).length).toBeLessThan(mail.length / 10)
})

test("mail of a megabyte and more is kept as it is, so that it is in memory once", () => {
  const mail = Buffer.concat([HEAD, Buffer.alloc(1024 * 1024, "A")])
  expect(pack(mail)).toBe(mail)
})

test("mail that was kept before anything was packed is read as it is", () => {
  expect(unpack(HEAD)).toBe(HEAD)
})

const HEAD = Buffer.from("From: me@example.test\r\n\r\n")
