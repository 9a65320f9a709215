import { expect, test } from "bun:test"
import { textPieces } from "../../src/console/mail/text-links"

const linksOf = (text: string) => textPieces(text).flatMap(({ url }) => url ?? [])

test.each([
  ["See https://a.test/x?y=1#z.", ["https://a.test/x?y=1#z"]],
  ["(http://a.test/) and <https://b.test/c>", ["http://a.test/", "https://b.test/c"]],
  ["https://a.test/wiki/Bell_(tower), then", ["https://a.test/wiki/Bell_(tower)"]],
  ["HTTPS://A.TEST/x!?", ["HTTPS://A.TEST/x"]],
  ["https://ü.test/ü", ["https://ü.test/ü"]],
  ["javascript:alert(1) data:text/html,x file:///etc ftp://a.test xhttp://a.test", []],
  ["https:// http://. https://%", []],
])("the links of the text %p are %p", (text, expected) => {
  expect(linksOf(text)).toEqual(expected)
})

test("all pieces together are the text", () => {
  for (const text of ["", "no link", "a https://a.test b\nhttps://b.test", "https://a.test"])
    expect(textPieces(text).map((piece) => piece.text)).toEqual(
      text === "" ? [] : expect.any(Array),
    )
  const text = "Hello https://a.test/x, and\r\n(https://b.test).\n"
  expect(
    textPieces(text)
      .map((piece) => piece.text)
      .join(""),
  ).toBe(text)
})

test("a text of nothing but addresses, or of one that does not end, has few links and takes no time", () => {
  expect(linksOf("https://a.test/ ".repeat(5000)).length).toBe(1000)
  const began = performance.now()
  textPieces("http://".repeat(150_000))
  textPieces(`https://a.test/${")".repeat(1_000_000)}`)
  textPieces(`https://a.test/${"(".repeat(1_000_000)}`)
  expect(performance.now() - began).toBeLessThan(2000)
})
