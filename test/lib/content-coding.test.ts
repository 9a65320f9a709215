import { expect, test } from "bun:test"
import { takesCoding } from "../../src/lib/content-coding"

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
