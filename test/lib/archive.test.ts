import { describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { expanded } from "../../src/lib/archive"
import { zip } from "../fixtures/reports/zip"
import fc from "../harness/properties"

const LIMITS = { bytes: 1_000_000, ratio: 200, entries: 3 }
const any = () => true
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString()

/** Made by Python's zipfile, with a comment behind the directory. */
const FOREIGN =
  "UEsDBBQAAAAIAKuIdl25hhrVLQAAAMoAAAAwAAAAZ29vZ2xlLmNvbSFzZW5kZXIudGVzdCExNzk1MjE5MjAwITE3OTUzMDU1OTkueG1ss7GvyM1RKEstKs7Mz7NVMtQzULK3s0lLTU1JSkzOtrNJtEuy0U8cvLQ+3KkAUEsBAhQDFAAAAAgAq4h2XbmGGtUtAAAAygAAADAAAAAAAAAAAAAAAIABAAAAAGdvb2dsZS5jb20hc2VuZGVyLnRlc3QhMTc5NTIxOTIwMCExNzk1MzA1NTk5LnhtbFBLBQYAAAAAAQABAF4AAAB7AAAAFwBtYWRlIGJ5IGFub3RoZXIgcHJvZ3JhbQ=="

test("gzip, zip and plain bytes are read alike", () => {
  const content = "<feedback/>".repeat(10)
  expect(text(expanded(Buffer.from(content), LIMITS, any))).toBe(content)
  expect(text(expanded(gzipSync(content), LIMITS, any))).toBe(content)
  expect(text(expanded(zip([{ name: "a.xml", content }]), LIMITS, any))).toBe(content)
  const stored = zip([{ name: "a.xml", content, stored: true }])
  expect(text(expanded(stored, LIMITS, any))).toBe(content)
})

test("an archive of another program is read", () => {
  const found = expanded(Buffer.from(FOREIGN, "base64"), LIMITS, (name) => name.endsWith(".xml"))
  expect(text(found)).toBe(`<?xml version="1.0"?><feedback>${"<a>b</a>".repeat(20)}</feedback>`)
})

test("of an archive it is the wanted file", () => {
  const archive = zip([
    { name: "readme.txt", content: "no" },
    { name: "a.xml", content: "yes" },
  ])
  expect(text(expanded(archive, LIMITS, (name) => name.endsWith(".xml")))).toBe("yes")
  expect(text(expanded(archive, LIMITS, () => false))).toBe("no")
})

const ZEROS = Buffer.alloc(50_000_000)

describe("given up is", () => {
  test.each([
    ["a gzip bomb", () => gzipSync(ZEROS)],
    ["a zip bomb", () => zip([{ name: "a.xml", content: ZEROS }])],
    ["a zip bomb that claims to be small", () => zip([{ name: "a", content: ZEROS, claimed: 9 }])],
    ["a file that claims 4 GB", () => zip([{ name: "a", content: "x", claimed: 0xffffffff }])],
    ["an archive of many files", () => zip(Array(4).fill({ name: "a", content: "x" }))],
    ["an encrypted file", () => zip([{ name: "a", content: "x", encrypted: true }])],
    ["half a gzip file", () => gzipSync("x".repeat(5_000)).subarray(0, 20)],
    ["an archive without directory", () => zip([{ name: "a", content: "x" }]).subarray(0, 40)],
    ["plain bytes over the limit", () => Buffer.alloc(1_000_001, "x")],
  ] as [string, () => Buffer][])("%s", (_, make) => {
    expect(expanded(make(), LIMITS, any)).toBeUndefined()
  })

  test("what has a ratio that only bombs have, though it is within the size", () => {
    const packed = gzipSync(Buffer.alloc(900_000))
    expect(packed.length * LIMITS.ratio).toBeLessThan(900_000)
    expect(expanded(packed, LIMITS, any)).toBeUndefined()
  })
})

test("a damaged archive never throws", () => {
  const archive = zip([
    { name: "a.xml", content: "<a/>".repeat(50) },
    { name: "b", content: "x", stored: true },
  ])
  const spoil = fc.array(fc.tuple(fc.nat(archive.length - 1), fc.nat(255)), { minLength: 1 })
  fc.assert(
    fc.property(spoil, fc.nat(archive.length), (changes, length) => {
      const copy = Buffer.from(archive)
      for (const [at, byte] of changes) copy[at] = byte
      expanded(copy, LIMITS, any)
      expanded(copy.subarray(0, length), LIMITS, any)
    }),
    { seed: 13, numRuns: 2_000 },
  )
})
