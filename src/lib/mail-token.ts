import { timingSafeEqual } from "node:crypto"
import { base32, unBase32 } from "./base32"

/** 80 bits: forging one token in a trillion tries a second takes thousands of years. */
const MAC_BYTES = 10
const ID_BYTES = 16

const FORM = /^([br])\+([a-z2-7]{42})$/
const MAC_FORM = /^[a-z2-7]{16}$/

/** What mail to the address is about: a report (`b`) or a reply (`r`). */
export type MailTokenKind = "b" | "r"

/** Each kind has a key of its own, so that the token of one is no token of another. */
type MacOfKind = (kind: MailTokenKind, text: string) => Uint8Array

type Mac = (text: string) => Uint8Array

/**
 * The local part of an address for one message, so that mail which comes there names the message and
 * cannot be made up: kind and `+`, then id and MAC in base32. `message_id` is a UUID.
 */
export function tokenAddress(kind: MailTokenKind, message_id: string, mac: MacOfKind): string {
  const id = idBytes(message_id)
  return `${kind}+${base32(Buffer.concat([id, shortened(mac(kind, message_id))]))}`
}

/** The kind and the message of such a local part; undefined for any other one. */
export function readTokenAddress(
  local: string,
  mac: MacOfKind,
): { kind: MailTokenKind; message_id: string } | undefined {
  const [, letter, token] = FORM.exec(local.toLowerCase()) ?? []
  const bytes = token === undefined ? undefined : unBase32(token, ID_BYTES + MAC_BYTES)
  if (!bytes) return undefined
  const kind = letter as MailTokenKind
  const message_id = uuidOf(bytes.subarray(0, ID_BYTES))
  const right = shortened(mac(kind, message_id))
  if (!timingSafeEqual(bytes.subarray(ID_BYTES), right)) return undefined
  return { kind, message_id }
}

/** The value of a header field that names a message, with a MAC behind it: `<id>; mac=<16 characters>`. */
export function markedId(message_id: string, mac: Mac): string {
  if (!UUID.test(message_id)) throw new TypeError(NO_UUID)
  return `${message_id}; mac=${base32(shortened(mac(message_id)))}`
}

/** The message that such a value names; undefined for any other value. */
export function readMarkedId(value: string, mac: Mac): string | undefined {
  const [, id = "", given = ""] = /^\s*([0-9a-f-]{36})\s*;\s*mac=(\S+)\s*$/i.exec(value) ?? []
  const message_id = id.toLowerCase()
  if (!UUID.test(message_id) || !MAC_FORM.test(given)) return undefined
  const right = base32(shortened(mac(message_id)))
  return timingSafeEqual(Buffer.from(given), Buffer.from(right)) ? message_id : undefined
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const NO_UUID = "a token is made for a UUID in lower case"

function idBytes(message_id: string): Buffer {
  if (!UUID.test(message_id)) throw new TypeError(NO_UUID)
  return Buffer.from(message_id.replaceAll("-", ""), "hex")
}

const shortened = (mac: Uint8Array) => mac.subarray(0, MAC_BYTES)

const uuidOf = (id: Uint8Array) =>
  Buffer.from(id)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
