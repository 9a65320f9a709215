import { describe, expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import {
  base32,
  emailIdHeader,
  localPartFor,
  readEmailIdHeader,
  readLocalPart,
  unBase32,
} from "../../src/core/mail-token"
import { isMailbox } from "../../src/lib/address"
import fc from "../harness/properties"

const secretsWith = (key: string) => ({
  mac: (purpose: string, text: string) =>
    createHmac("sha256", key).update(`${purpose} ${text}`).digest(),
})
const ours = secretsWith("ours")
const theirs = secretsWith("theirs")
const ID = "0199a1c2-7d3e-7abc-8def-0123456789ab"

describe.each(["b", "r"] as const)("an address of kind %s", (kind) => {
  test("names its message, in whatever case it comes back", () => {
    const local = localPartFor(ours, kind, ID)
    expect(local).toMatch(new RegExp(`^${kind}\\+[a-z2-7]{42}$`))
    expect(isMailbox(`${local}@bounce.example.test`)).toBe(true)
    expect(readLocalPart(ours, local)).toEqual({ kind, message_id: ID })
    expect(readLocalPart(ours, local.toUpperCase())).toEqual({ kind, message_id: ID })
  })

  test("names nothing where it was changed, or made with another key or for another kind", () => {
    const local = localPartFor(ours, kind, ID)
    for (let at = 0; at < local.length; at++) {
      const changed = `${local.slice(0, at)}${local[at] === "a" ? "b" : "a"}${local.slice(at + 1)}`
      expect(readLocalPart(ours, changed)).toBeUndefined()
    }
    expect(readLocalPart(ours, localPartFor(theirs, kind, ID))).toBeUndefined()
    for (const other of ["b", "r"].filter((one) => one !== kind)) {
      expect(readLocalPart(ours, local.replace(kind, other))).toBeUndefined()
    }
  })
})

test.each(["", "b+", "ann", `b+${"a".repeat(41)}`, `b+${"a".repeat(43)}`, `b+${"1".repeat(42)}`])(
  "%p is no such address",
  (local) => {
    expect(readLocalPart(ours, local)).toBeUndefined()
  },
)

test("only an id of a message gets one", () => {
  expect(() => localPartFor(ours, "b", "not-an-id")).toThrow(TypeError)
  expect(() => emailIdHeader(ours, "not-an-id")).toThrow(TypeError)
})

test("the header of an id is read back, and no other value is", () => {
  const value = emailIdHeader(ours, ID)
  expect(value).toMatch(/^0199a1c2-7d3e-7abc-8def-0123456789ab; mac=[a-z2-7]{16}$/)
  expect(readEmailIdHeader(ours, ` ${value} `)).toBe(ID)
  const other = value.replace("9ab;", "9ac;")
  const wrong = [ID, "", `${ID}; mac=`, `${ID}; mac=${"a".repeat(16)}`, other, `${value}a`]
  for (const one of wrong) expect(readEmailIdHeader(ours, one)).toBeUndefined()
  expect(readEmailIdHeader(theirs, value)).toBeUndefined()
})

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
