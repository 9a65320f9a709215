import { expect, test } from "bun:test"
import { base32, unBase32 } from "../../src/lib/base32"
import fc from "../harness/properties"

/** RFC 4648, 10, in lower case and without padding. */
test.each([
  ["", ""],
  ["f", "my"],
  ["fo", "mzxq"],
  ["foo", "mzxw6"],
  ["foob", "mzxw6yq"],
  ["fooba", "mzxw6ytb"],
  ["foobar", "mzxw6ytboi"],
])("%j is written %j and read back", (text, written) => {
  expect(base32(Buffer.from(text))).toBe(written)
  expect(unBase32(written, text.length)?.toString()).toBe(text)
})

test("any bytes are read back, and of each value there is one spelling", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (bytes) => {
      const text = base32(bytes)
      expect(unBase32(text, bytes.length)).toEqual(Buffer.from(bytes))
      const spellings = [..."abcdefghijklmnopqrstuvwxyz234567"]
        .map((last) => unBase32(text.slice(0, -1) + last, bytes.length))
        .filter((read) => read?.equals(bytes))
      expect(spellings).toHaveLength(1)
    }),
  )
})

test.each(["mzxw", "mzxw6y", "MZXW6", "mzxw1", "mzx 6", "mzxw="])(
  "%j is no three bytes",
  (text) => {
    expect(unBase32(text, 3)).toBeUndefined()
  },
)
