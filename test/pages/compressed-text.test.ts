import { expect, test } from "bun:test"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import {
  compressedAnswer,
  compressedText,
  plainText,
  takesCoding,
} from "../../src/pages/compressed-text"

const TEXT = "Ünï 🙂 text. ".repeat(50)
const packed = await compressedText(TEXT, 5)

const answer = (headers: Record<string, string>) =>
  compressedAnswer(new Request("http://belfry.test/", { headers }), packed, {
    "content-type": "text/plain",
  })

test("a text comes back from both codings, and has an ETag of its own", async () => {
  expect(await plainText(packed)).toBe(TEXT)
  expect(brotliDecompressSync(await packed.brotli.bytes()).toString()).toBe(TEXT)
  expect((await compressedText(TEXT, 1)).etag).toBe(packed.etag)
  expect((await compressedText(`${TEXT}.`, 1)).etag).not.toBe(packed.etag)
})

test.each([
  ["br", "br"],
  ["gzip, deflate, br, zstd", "br"],
  ["gzip", "gzip"],
  ["br;q=0, gzip", "gzip"],
  ["*;q=0.1", "br"],
  ["identity", null],
  ["deflate", null],
  ["", null],
])("a client that takes %j gets the coding %j", async (accepted, coding) => {
  const answered = await answer({ "accept-encoding": accepted })
  expect(answered.headers.get("content-encoding")).toBe(coding)
  const bytes = await answered.bytes()
  const text = coding === "br" ? brotliDecompressSync(bytes) : coding ? gunzipSync(bytes) : bytes
  expect(Buffer.from(text).toString()).toBe(TEXT)
  expect(answered.headers.get("content-type")).toBe("text/plain")
})

test("what a client has already is not sent again", async () => {
  for (const known of [packed.etag, `"other", W/${packed.etag}`]) {
    const answered = await answer({ "if-none-match": known, "accept-encoding": "br" })
    expect([answered.status, await answered.text(), answered.headers.get("etag")]).toEqual([
      304,
      "",
      packed.etag,
    ])
  }
})

test("other work goes on while a text is compressed", async () => {
  const large = Array.from({ length: 100_000 }, (_, n) => `${n} `).join("")
  let is_done = false
  let turns = 0
  const compressing = compressedText(large, 9).then(() => {
    is_done = true
  })
  while (!is_done) {
    await new Promise((resolve) => setImmediate(resolve))
    turns += 1
  }
  await compressing
  expect(turns).toBeGreaterThan(3)
})

test.each<[string | null, string, boolean]>([
  [null, "br", false],
  ["", "br", false],
  ["gzip, deflate, br, zstd", "br", true],
  ["gzip,BR", "br", true],
  ["gzip;q=0.5, br ; q=0.1", "br", true],
  ["br;q=0, gzip", "br", false],
  ["br;q=0.000, *", "br", false],
  ["gzip; q=0", "gzip", false],
  ["x-br, brotli", "br", false],
  ["*", "gzip", true],
  ["*;q=0", "gzip", false],
  ["br;q=no", "br", true],
  ["br;q=.", "br", false],
])("Accept-Encoding %p and %s: %p", (field, coding, taken) => {
  expect(takesCoding(field, coding)).toBe(taken)
})
