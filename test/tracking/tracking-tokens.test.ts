import { expect, test } from "bun:test"
import { openToken, sealToken, tokenKeys } from "../../src/tracking/tracking-tokens"

const keys = tokenKeys(new Uint8Array(32).fill(7))
const content = Buffer.from("0123456789abcdefhttps://shop.test/a?b=1")
const token = sealToken(keys, "click", content)

test("a token opens to what was sealed, with the same key and for the same use", () => {
  expect(openToken(keys, "click", token)).toEqual(content)
  expect(sealToken(keys, "click", content)).toBe(token)
  expect(openToken(keys, "open", token)).toBeUndefined()
  expect(openToken(tokenKeys(new Uint8Array(32)), "click", token)).toBeUndefined()
})

test("it shows nothing of what it holds", () => {
  const bytes = Buffer.from(token, "base64url").toString("latin1")
  for (const part of ["0123", "shop", "http"]) expect(bytes).not.toContain(part)
})

test("no other text opens: each character changed, left out or doubled", () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
  for (let at = 0; at < token.length; at++) {
    const [before, after] = [token.slice(0, at), token.slice(at + 1)]
    for (const character of alphabet) {
      if (character === token[at]) continue
      expect(openToken(keys, "click", `${before}${character}${after}`)).toBeUndefined()
    }
    expect(openToken(keys, "click", before + after)).toBeUndefined()
    expect(openToken(keys, "click", `${before}${token[at]}${token[at]}${after}`)).toBeUndefined()
  }
})

test.each(["", "A", "A".repeat(21), "A".repeat(22), "A".repeat(20_000), `${token}=`, `${token} `])(
  "%p is none",
  (text) => expect(openToken(keys, "click", text)).toBeUndefined(),
)
