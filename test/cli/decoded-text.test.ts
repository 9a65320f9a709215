import { expect, test } from "bun:test"
import { type ReadAs, textIn } from "../../cli/lib/decoded-text"

async function read(bytes: Uint8Array, length: number) {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
  }
  const found: ReadAs = { encoding: "utf-8" }
  const texts = await Array.fromAsync(textIn(pieces(), "text", found))
  return [texts.join(""), found.encoding]
}

const TEXT = "email;name\nann@x.test;Grüße 日本 😀 € “x”\n"
const WEST = "email;name\nann@x.test;Grüße\n"
const swapped = (bytes: Buffer) => Buffer.from(bytes).swap16()
const latin = (text: string) => Buffer.from(text, "latin1")

test.each<[string, Uint8Array, string, ReadAs["encoding"]]>([
  ["UTF-8", Buffer.from(TEXT), TEXT, "utf-8"],
  ["UTF-8 with a mark", Buffer.from(`\ufeff${TEXT}`), TEXT, "utf-8"],
  ["UTF-16", Buffer.from(TEXT, "utf16le"), TEXT, "utf-16le"],
  ["UTF-16 with a mark", Buffer.from(`\ufeff${TEXT}`, "utf16le"), TEXT, "utf-16le"],
  ["UTF-16, big end first", swapped(Buffer.from(TEXT, "utf16le")), TEXT, "utf-16be"],
  ["and its mark", swapped(Buffer.from(`\ufeff${TEXT}`, "utf16le")), TEXT, "utf-16be"],
  ["windows-1252", latin(WEST), WEST, "windows-1252"],
  ["its signs of its own", latin("\x80 \x93x\x94"), "€ “x”", "windows-1252"],
  ["both", Buffer.concat([Buffer.from(TEXT), latin(WEST)]), TEXT + WEST, "windows-1252"],
  ["a cut character at the end", Buffer.from([0x61, 0xe2, 0x82]), "aâ‚", "windows-1252"],
])("the bytes decide the encoding: %s", async (_, bytes, text, encoding) => {
  for (const length of [1, 2, 3, 300]) expect(await read(bytes, length)).toEqual([text, encoding])
})

test.each([
  ["a picture", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d])],
  ["Shift_JIS", Buffer.from([0x61, 0x8d, 0x82, 0x8b, 0xb4])],
  ["a zero late in a text", Buffer.concat([Buffer.from("x".repeat(500)), Buffer.from([0])])],
])("what is no text is refused: %s", async (_, bytes) => {
  await expect(read(bytes, 100)).rejects.toThrow("is no text in UTF-8, UTF-16 or windows-1252")
})
