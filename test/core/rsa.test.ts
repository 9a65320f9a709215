import { describe, expect, test } from "bun:test"
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from "node:crypto"
import { join } from "node:path"
import { openssl, signRsa } from "../../src/core/rsa"
import { builtIn } from "../../src/lib/dkim"
import { missing } from "../harness/peers"
import { sizes } from "../harness/sizes"

const keyOf = (modulusLength: number) =>
  generateKeyPairSync("rsa", { modulusLength }).privateKey as KeyObject

const isGood = (data: Uint8Array, key: KeyObject, signature: Uint8Array) =>
  verify("sha256", data, createPublicKey(key), signature)

test("the one that is used signs so that the runtime verifies it, the first time and later", () => {
  const key = keyOf(2048)
  for (const words of ["one", "two", "three"]) {
    const data = Buffer.from(words)
    expect(isGood(data, key, signRsa(data, key))).toBe(true)
  }
})

test("where the library is missing there is none, and the runtime signs", () => {
  expect(openssl("/usr/lib/libcrypto.so.no-such")).toBeUndefined()
  expect(openssl("libc.so.6")).toBeUndefined() // without the functions
})

describe.skipIf(missing("openssl"))("the system's OpenSSL", () => {
  test.each([1024, 2048, ...sizes.large_keys])(
    "makes the same bytes with a key of %d bits",
    (bits) => {
      const own = openssl()
      if (!own) throw new Error("libcrypto.so.3 could not be loaded")
      const key = keyOf(bits)
      const all = [0, 1, 63, 64, 600, 70_000].map((size) => Buffer.alloc(size, "a"))
      own(Buffer.of(1), key)
      own(Buffer.of(2), key) // from here on by the library alone
      for (const data of [...all, ...all.map((one) => one.subarray(one.length >> 1))]) {
        expect(own(data, key).equals(builtIn(data, key))).toBe(true)
      }
    },
  )

  test("keeps keys apart, whichever signed last", () => {
    const own = openssl()
    const keys = [keyOf(1024), keyOf(2048), keyOf(1024)]
    const data = Buffer.from("the same words")
    for (const key of [...keys, ...keys, ...keys.toReversed()]) {
      expect(own?.(data, key).equals(builtIn(data, key))).toBe(true)
    }
  })

  test("gives back what a signature took", async () => {
    const script = join(import.meta.dir, "rsa-growth.ts")
    const child = Bun.spawn({ cmd: [process.execPath, script], stdout: "pipe" })
    expect(await child.exited).toBe(0)
    // A forgotten context of each of the signatures would be nine million bytes.
    expect(Number(await child.stdout.text())).toBeLessThan(5_000_000)
  })

  test("leaves to the runtime what it cannot read", () => {
    const own = openssl()
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
    expect(
      isGood(
        Buffer.from("words"),
        privateKey,
        own?.(Buffer.from("words"), privateKey) ?? Buffer.of(),
      ),
    ).toBe(true)
    expect(
      isGood(
        Buffer.from("more"),
        privateKey,
        own?.(Buffer.from("more"), privateKey) ?? Buffer.of(),
      ),
    ).toBe(true)
  })
})
