import { describe, expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import { isMailbox } from "../../src/lib/address"
import {
  type MailTokenKind,
  markedId,
  readMarkedId,
  readTokenAddress,
  tokenAddress,
} from "../../src/lib/mail-token"

const macWith = (key: string) => (kind: MailTokenKind, text: string) =>
  createHmac("sha256", key).update(`${kind} ${text}`).digest()
const mac = macWith("ours")
const ID = "0199a1c2-7d3e-7abc-8def-0123456789ab"

describe.each(["b", "r"] as const)("an address of kind %s", (kind) => {
  test("names its message, in whatever case it comes back", () => {
    const local = tokenAddress(kind, ID, mac)
    expect(local).toMatch(new RegExp(`^${kind}\\+[a-z2-7]{42}$`))
    expect(isMailbox(`${local}@bounce.example.test`)).toBe(true)
    expect(readTokenAddress(local, mac)).toEqual({ kind, message_id: ID })
    expect(readTokenAddress(local.toUpperCase(), mac)).toEqual({ kind, message_id: ID })
  })

  test("names nothing where it was changed, or made with another key or for another kind", () => {
    const local = tokenAddress(kind, ID, mac)
    for (let at = 0; at < local.length; at++) {
      const changed = `${local.slice(0, at)}${local[at] === "a" ? "b" : "a"}${local.slice(at + 1)}`
      expect(readTokenAddress(changed, mac)).toBeUndefined()
    }
    expect(readTokenAddress(tokenAddress(kind, ID, macWith("theirs")), mac)).toBeUndefined()
    for (const other of ["b", "r"].filter((one) => one !== kind)) {
      expect(readTokenAddress(local.replace(kind, other), mac)).toBeUndefined()
    }
  })
})

test.each(["", "b+", "ann", `b+${"a".repeat(41)}`, `b+${"a".repeat(43)}`, `b+${"1".repeat(42)}`])(
  "%p is no such address",
  (local) => {
    expect(readTokenAddress(local, mac)).toBeUndefined()
  },
)

test("only an id of a message gets one", () => {
  expect(() => tokenAddress("b", "not-an-id", mac)).toThrow(TypeError)
  expect(() => markedId("not-an-id", (text) => mac("r", text))).toThrow(TypeError)
})

test("a marked id is read back, and no other value is", () => {
  const own = (text: string) => mac("r", text)
  const value = markedId(ID, own)
  expect(value).toMatch(/^0199a1c2-7d3e-7abc-8def-0123456789ab; mac=[a-z2-7]{16}$/)
  expect(readMarkedId(` ${value} `, own)).toBe(ID)
  const other = value.replace("9ab;", "9ac;")
  const wrong = [ID, "", `${ID}; mac=`, `${ID}; mac=${"a".repeat(16)}`, other, `${value}a`]
  for (const one of wrong) expect(readMarkedId(one, own)).toBeUndefined()
  expect(readMarkedId(value, (text) => macWith("theirs")("r", text))).toBeUndefined()
})
