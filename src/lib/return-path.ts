import { timingSafeEqual } from "node:crypto"

/** 80 bits: forging one report in a trillion tries a second takes thousands of years. */
const MAC_BYTES = 10
const ID_BYTES = 16

/** RFC 4648, 6, in lower case: mail servers may change the case of a local part. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

const FORM = /^b\+([a-z2-7]{42})$/

type Mac = (text: string) => Uint8Array

/**
 * The local part of the envelope sender for one message, so that a report which comes back names the
 * message and cannot be made up: `b+`, then id and MAC in base32. `message_id` is a UUID.
 */
export function returnPath(message_id: string, mac: Mac): string {
  const id = Buffer.from(message_id.replaceAll("-", ""), "hex")
  if (id.length !== ID_BYTES) throw new TypeError("a return path is made for a UUID")
  return `b+${base32(Buffer.concat([id, macOf(id, mac)]))}`
}

/** The message that a return path was made for; undefined for any other local part. */
export function readReturnPath(local: string, mac: Mac): string | undefined {
  const [, token] = FORM.exec(local.toLowerCase()) ?? []
  const bytes = token === undefined ? undefined : unBase32(token)
  if (!bytes) return undefined
  const id = bytes.subarray(0, ID_BYTES)
  if (!timingSafeEqual(bytes.subarray(ID_BYTES), macOf(id, mac))) return undefined
  return uuidOf(id)
}

const macOf = (id: Uint8Array, mac: Mac) => Buffer.from(mac(uuidOf(id))).subarray(0, MAC_BYTES)

const uuidOf = (id: Uint8Array) =>
  Buffer.from(id)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")

function base32(bytes: Uint8Array): string {
  let text = ""
  let value = 0
  let bits = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(value >>> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + ALPHABET[(value << (5 - bits)) & 31]
}

/** Undefined where the bits that fill up the last character are not the zeros that we write. */
function unBase32(text: string): Buffer | undefined {
  const bits = [...text].map((one) => ALPHABET.indexOf(one).toString(2).padStart(5, "0")).join("")
  const length = ID_BYTES + MAC_BYTES
  if (bits.slice(8 * length).includes("1")) return undefined
  const bytes = (bits.slice(0, 8 * length).match(/.{8}/g) ?? []).map((byte) =>
    Number.parseInt(byte, 2),
  )
  return Buffer.from(bytes)
}
