import { expect, test } from "bun:test"
import {
  digestOf,
  MinisignError,
  readPublicKey,
  readSignature,
  verifyDigest,
} from "../../src/lib/minisign"
import {
  newKeyPair,
  publicKeyText,
  readSecretKey,
  secretKeyText,
  signDigest,
} from "../harness/minisign-signing"

/** The vectors in the documentation of the Rust crate minisign-verify. */
const KEY = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
const PREHASHED = `untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
`
const LEGACY = `untrusted comment: signature from minisign secret key
RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=
trusted comment: timestamp:1555779966\tfile:test
QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==
`

const digest = (text: string) =>
  digestOf(
    (async function* () {
      for (const part of text) yield Buffer.from(part)
    })(),
  )

const reasonOf = async (act: () => unknown) => {
  try {
    await act()
  } catch (error) {
    if (error instanceof MinisignError) return error.reason
    throw error
  }
  return "ok"
}

test("a published signature fits its file, and its comment is read", async () => {
  const key = readPublicKey(KEY)
  expect(key.id).toBe("E7620F1842B4E81F")
  const given = readSignature(PREHASHED)
  expect(verifyDigest(key, given, await digest("test"))).toBe("timestamp:1556193335\tfile:test")
})

test("another file, another comment and another key are told apart", async () => {
  const key = readPublicKey(KEY)
  const given = readSignature(PREHASHED)
  const right = await digest("test")
  const other = await digest("Test")
  expect(await reasonOf(() => verifyDigest(key, given, other))).toBe("wrong_signature")
  const changed = readSignature(PREHASHED.replace("file:test", "file:Test"))
  expect(await reasonOf(() => verifyDigest(key, changed, right))).toBe("wrong_signature")
  expect(await reasonOf(() => verifyDigest(newKeyPair(), given, right))).toBe("other_key")
  const renamed = { ...newKeyPair(), id: key.id }
  expect(await reasonOf(() => verifyDigest(renamed, given, right))).toBe("wrong_signature")
})

test("a signature of the older form is refused, as is what is none", async () => {
  for (const text of [LEGACY, "", PREHASHED.slice(0, 150), `${PREHASHED}more\n`, KEY])
    expect(await reasonOf(() => readSignature(text))).toBe("malformed")
  for (const text of ["", "RWQ=", KEY.slice(0, -4), LEGACY])
    expect(await reasonOf(() => readPublicKey(text))).toBe("malformed")
})

test("every flipped bit of a signature is found", async () => {
  const key = readPublicKey(KEY)
  const right = await digest("test")
  const given = readSignature(PREHASHED)
  for (const field of ["signature", "comment_signature"] as const) {
    for (let bit = 0; bit < 512; bit++) {
      const bytes = Buffer.from(given[field])
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      const changed = { ...given, [field]: bytes }
      expect(await reasonOf(() => verifyDigest(key, changed, right))).toBe("wrong_signature")
    }
  }
})

test("what we sign is verified with the pair as its files keep it", async () => {
  const pair = readSecretKey(secretKeyText(newKeyPair()))
  const key = readPublicKey(publicKeyText(pair))
  const comment = "file:belfry.tar.gz\tversion:0.2.0"
  const text = signDigest(pair, await digest("test"), comment)
  expect(verifyDigest(key, readSignature(text), await digest("test"))).toBe(comment)
  expect(() => signDigest(pair, Buffer.alloc(64), "two\nlines")).toThrow("one line")
})

/** From the tests of minisign-net. Its password would cost a gigabyte of memory. */
const WITH_PASSWORD =
  "RWRTY0IyrrVD++o0Z62ZasI3s4ZGvLwS5iMvvAqM2aHtRscmOvIAAAACAAAAAAAAAEAAAAAAmS8i2HVZHTu33D93yroyKeL3uK/mVRQLr6vLbF2LJZNmool2JN5ldD3nH48tzFRalsS1MP/XltkvNesCQl9BlquaN/8vVCd01nZiX43mifoto+CgJQ79WDR8NbknyknsTZNoe+Wdbho="

test("a secret key that is damaged or has a password says so", () => {
  const text = secretKeyText(newKeyPair())
  const bytes = Buffer.from(text.split("\n")[1] ?? "", "base64")
  bytes[110] = (bytes[110] ?? 0) ^ 1
  expect(() => readSecretKey(bytes.toString("base64"))).toThrow("damaged")
  expect(() => readSecretKey(WITH_PASSWORD)).toThrow("without one, by `minisign -G -W`")
  expect(() => readSecretKey(KEY)).toThrow("not a secret key")
})
