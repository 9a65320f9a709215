import { expect, test } from "bun:test"
import { BLOCK_BYTES, paddingOf, readTarHeader, tarHeader } from "../../src/lib/ustar"

const entry = { name: "blobs/a", size: 1234, modified: 1_795_000_000 }

test("a header is read as it was written", () => {
  expect(readTarHeader(tarHeader(entry))).toEqual(entry)
  expect(tarHeader(entry)).toHaveLength(BLOCK_BYTES)
})

test("a file above 8 GiB has its size in a pax header", () => {
  for (const size of [8 ** 11 - 1, 8 ** 11, 99_999_999_999, 2 ** 50 - 1]) {
    const header = tarHeader({ ...entry, size })
    expect(header).toHaveLength(size < 8 ** 11 ? BLOCK_BYTES : 3 * BLOCK_BYTES)
    expect(readTarHeader(header)).toEqual({ ...entry, size })
  }
  const first = tarHeader({ ...entry, size: 8 ** 11 }).subarray(0, BLOCK_BYTES)
  expect(readTarHeader(first)).toEqual({ blocks_needed: 3 })
})

test("a header with any bit changed is none of ours", () => {
  for (const size of [1234, 8 ** 11]) {
    const header = tarHeader({ ...entry, size })
    for (let bit = 0; bit < header.length * 8; bit++) {
      const at = bit >> 3
      // The record of a pax header has no checksum of its own: the hash of the file finds its changes.
      if (header.length > BLOCK_BYTES && Math.floor(at / BLOCK_BYTES) === 1) continue
      const changed = Buffer.from(header)
      changed[at] = (changed[at] ?? 0) ^ (1 << (bit & 7))
      expect([bit, readTarHeader(changed)]).toEqual([bit, undefined])
    }
  }
})

test("a name has at most 100 bytes", () => {
  expect(tarHeader({ ...entry, name: "n".repeat(100) })).toHaveLength(BLOCK_BYTES)
  expect(() => tarHeader({ ...entry, name: "n".repeat(101) })).toThrow(RangeError)
})

test("contents are padded to whole blocks", () => {
  expect([0, 1, 511, 512, 513].map(paddingOf)).toEqual([0, 511, 1, 0, 511])
})
