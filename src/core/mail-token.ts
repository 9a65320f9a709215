import { timingSafeEqual } from "node:crypto"
import { bytesOfId, isUuid, uuidOfBytes } from "./ids"
import type { Secrets } from "./secrets"

/** 80 bits: forging one token in a trillion tries a second takes thousands of years. */
const MAC_BYTES = 10
const ID_BYTES = 16

const FORM = /^([br])\+([a-z2-7]{42})$/
const MAC_FORM = /^[a-z2-7]{16}$/

/** What mail to the address is about: a report (`b`) or a reply (`r`). */
export type MailTokenKind = "b" | "r"

/** What each MAC is made for. All of them are in mail that left long ago: never change one. */
const PURPOSES: Record<MailTokenKind, string> = {
  b: "return path",
  r: "reply address",
}
const HEADER_PURPOSE = "email id header"

/** Each purpose has a key of its own, so that the token of one is no token of another. */
type Macs = Pick<Secrets, "mac">

/**
 * The local part of the address for one kind of mail about this message, so that mail which comes there
 * names the message and cannot be made up: kind and `+`, then id and MAC in base32. `message_id` is a UUID.
 */
export function localPartFor(secrets: Macs, kind: MailTokenKind, message_id: string): string {
  const id = bytesOfId(message_id)
  const mac = shortened(secrets.mac(PURPOSES[kind], message_id))
  return `${kind}+${base32(Buffer.concat([id, mac]))}`
}

/** The kind and the message of such a local part; undefined for any other one. */
export function readLocalPart(
  secrets: Macs,
  local: string,
): { kind: MailTokenKind; message_id: string } | undefined {
  const [, letter, token] = FORM.exec(local.toLowerCase()) ?? []
  const bytes = token === undefined ? undefined : unBase32(token, ID_BYTES + MAC_BYTES)
  if (!bytes) return undefined
  const kind = letter as MailTokenKind
  const message_id = uuidOfBytes(bytes)
  const right = shortened(secrets.mac(PURPOSES[kind], message_id))
  if (!timingSafeEqual(bytes.subarray(ID_BYTES), right)) return undefined
  return { kind, message_id }
}

/** Carried by every email that leaves, so that a report which quotes the header names the message. */
export const EMAIL_ID_HEADER = "X-Svc-Email-Id"

/** The value of that header, with a MAC behind the id: `<id>; mac=<16 characters>`. */
export function emailIdHeader(secrets: Macs, message_id: string): string {
  if (!isUuid(message_id)) throw new TypeError("the header is made for an id")
  return `${message_id}; mac=${base32(shortened(secrets.mac(HEADER_PURPOSE, message_id)))}`
}

/** The message that a quoted header names; undefined where its MAC is wrong, and for any other value. */
export function readEmailIdHeader(secrets: Macs, value: string): string | undefined {
  const [, id = "", given = ""] = /^\s*([0-9a-f-]{36})\s*;\s*mac=(\S+)\s*$/i.exec(value) ?? []
  const message_id = id.toLowerCase()
  if (!isUuid(message_id) || !MAC_FORM.test(given)) return undefined
  const right = base32(shortened(secrets.mac(HEADER_PURPOSE, message_id)))
  return timingSafeEqual(Buffer.from(given), Buffer.from(right)) ? message_id : undefined
}

const shortened = (mac: Uint8Array) => mac.subarray(0, MAC_BYTES)

/** RFC 4648, 6, in lower case: mail servers may change the case of a local part. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
const letters = Buffer.from(ALPHABET)

/** The bytes in base32, in lower case and without padding. */
export function base32(bytes: Uint8Array): string {
  const text = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5))
  let value = 0
  let bits = 0
  let next = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text[next++] = letters[(value >>> (bits - 5)) & 31] ?? 0
  }
  if (bits > 0) text[next] = letters[(value << (5 - bits)) & 31] ?? 0
  return text.toString("latin1")
}

/**
 * `length` bytes of a text that `base32` made. Undefined for any other text: of each value there is
 * one spelling, whose spare bits are zero.
 */
export function unBase32(text: string, length: number): Buffer | undefined {
  if (text.length !== Math.ceil((length * 8) / 5)) return undefined
  const bytes = Buffer.alloc(length)
  let value = 0
  let bits = 0
  let next = 0
  for (let at = 0; at < text.length; at++) {
    const digit = DIGITS[text.charCodeAt(at)] ?? NO_DIGIT
    if (digit === NO_DIGIT) return undefined
    value = ((value << 5) | digit) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes[next++] = value >>> bits
  }
  return (value & ((1 << bits) - 1)) === 0 ? bytes : undefined
}

const NO_DIGIT = 255

/** The value of a digit by its character code. */
const DIGITS = new Uint8Array(128).fill(NO_DIGIT)
for (const [value, digit] of [...ALPHABET].entries()) DIGITS[digit.charCodeAt(0)] = value
