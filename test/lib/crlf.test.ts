import { expect, test } from "bun:test"
import fc from "fast-check"
import { canonical, isClean } from "../../src/lib/crlf"

const clean = (text: string) => isClean(Buffer.from(text))

test("every kind of line end becomes CRLF", () => {
  expect(canonical("a\nb\rc\r\nd\n\re\r\r\nf")).toBe("a\r\nb\r\nc\r\nd\r\n\r\ne\r\n\r\nf")
})

test.each(["", "a", "\r\n", "a\r\n\r\nb", "a\r\nb"])("%p is clean", (text) => {
  expect(clean(text)).toBe(true)
})

test.each(["\n", "\r", "\n\r", "a\nb", "a\rb", "a\r\r\nb", "a\r\n\nb", "a\r\nb\r", "a\0b"])(
  "%p is not",
  (text) => {
    expect(clean(text)).toBe(false)
  },
)

test("what was made canonical is clean, and stays as it is", () => {
  const lines = fc.string({ unit: fc.constantFrom("\r", "\n", "a", ".") })
  fc.assert(
    fc.property(lines, (text) => {
      expect(clean(canonical(text))).toBe(true)
      expect(canonical(canonical(text))).toBe(canonical(text))
      expect(clean(text)).toBe(canonical(text) === text)
    }),
  )
})
