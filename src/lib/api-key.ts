import { crc32 } from "node:zlib"

/** `svc_live_` + 8 characters that find the key + 43 that prove it + 6 of checksum. */
const FORM = /^svc_live_([0-9A-Za-z]{8})[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/

const PREFIX = "svc_live_"
const LOOKUP_CHARACTERS = 8
const SECRET_CHARACTERS = 43 // 62^43 > 2^256
const CHECKSUM_CHARACTERS = 6
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** A new key's text: 256 random bits, and a checksum by which scanners can tell it is one. */
export function newKeyText(): string {
  const lookup = base62(random(6), LOOKUP_CHARACTERS)
  const body = PREFIX + lookup + base62(random(32), SECRET_CHARACTERS)
  return body + checksum(body)
}

/** The part that finds the row; undefined for a text that no key of ours can have. */
export function lookupOf(key: string): string | undefined {
  const lookup = FORM.exec(key)?.[1]
  if (!lookup) return undefined
  const body = key.slice(0, -CHECKSUM_CHARACTERS)
  return key.endsWith(checksum(body)) ? lookup : undefined
}

/** What a list may show: enough to recognise a key, nothing that proves it. */
export const visibleParts = (key: string) => ({
  prefix: key.slice(0, PREFIX.length + LOOKUP_CHARACTERS),
  last4: key.slice(-4),
})

/** The key holds 256 random bits, so a plain hash is enough: there is nothing to guess. */
export const hashOf = (key: string): string => Bun.SHA256.hash(key, "hex")

const checksum = (body: string) => base62Of(BigInt(crc32(body)), CHECKSUM_CHARACTERS)

const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes))

const base62 = (bytes: Uint8Array, characters: number) =>
  base62Of(BigInt(`0x${Buffer.from(bytes).toString("hex")}`), characters)

function base62Of(number: bigint, characters: number): string {
  let text = ""
  for (let rest = number; text.length < characters; rest /= 62n) {
    text = ALPHABET[Number(rest % 62n)] + text
  }
  return text
}
