import { expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import { isMailbox } from "../../src/lib/address"
import { readReturnPath, returnPath } from "../../src/lib/return-path"

const macWith = (key: string) => (text: string) => createHmac("sha256", key).update(text).digest()
const mac = macWith("ours")
const ID = "0199a1c2-7d3e-7abc-8def-0123456789ab"

test("a return path names its message, in whatever case it comes back", () => {
  const local = returnPath(ID, mac)
  expect(local).toMatch(/^b\+[a-z2-7]{42}$/)
  expect(isMailbox(`${local}@bounce.example.test`)).toBe(true)
  expect(readReturnPath(local, mac)).toBe(ID)
  expect(readReturnPath(local.toUpperCase(), mac)).toBe(ID)
})

test("a return path that was changed, or made with another key, names nothing", () => {
  const local = returnPath(ID, mac)
  for (let at = 2; at < local.length; at++) {
    const changed = `${local.slice(0, at)}${local[at] === "a" ? "b" : "a"}${local.slice(at + 1)}`
    expect(readReturnPath(changed, mac)).toBeUndefined()
  }
  expect(readReturnPath(returnPath(ID, macWith("theirs")), mac)).toBeUndefined()
})

test.each(["", "b+", "ann", `b+${"a".repeat(41)}`, `b+${"a".repeat(43)}`, `b+${"1".repeat(42)}`])(
  "%p is no return path",
  (local) => {
    expect(readReturnPath(local, mac)).toBeUndefined()
  },
)

test("only an id of a message gets one", () => {
  expect(() => returnPath("not-an-id", mac)).toThrow(TypeError)
})
