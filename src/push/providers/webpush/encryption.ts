import { createCipheriv, randomBytes } from "node:crypto"
import type { SubscriptionKeys } from "../../../devices/tables"

const P256 = { name: "ECDH", namedCurve: "P-256" } as const
const KEY_INFO = Buffer.from("Content-Encoding: aes128gcm\0")
const NONCE_INFO = Buffer.from("Content-Encoding: nonce\0")
const PUSH_INFO = Buffer.from("WebPush: info\0")
const [SALT_BYTES, TAG_BYTES, PUBLIC_KEY_BYTES] = [16, 16, 65]

/** What every receiver takes. A longer message has a longer record, because there may be only one. */
const USUAL_RECORD_BYTES = 4096

/** What is made anew for each message. */
export interface MessageKeys {
  pair: CryptoKeyPair
  salt: Uint8Array
}

async function freshKeys(): Promise<MessageKeys> {
  const pair = await crypto.subtle.generateKey(P256, false, ["deriveBits"])
  return { pair, salt: randomBytes(SALT_BYTES) }
}

/**
 * One record of `aes128gcm` (RFC 8188) for a subscription (RFC 8291). The agreement of keys, which takes most of the
 * time, is on another thread. Rejects for keys that are none.
 */
export async function encryptPush(
  plain: Uint8Array,
  { p256dh, auth }: SubscriptionKeys,
  made?: MessageKeys,
): Promise<Uint8Array<ArrayBuffer>> {
  const receiver = Buffer.from(p256dh, "base64url")
  const receiver_key = await crypto.subtle.importKey("raw", receiver, P256, false, [])
  const { pair, salt } = made ?? (await freshKeys())
  const [shared, exported] = await Promise.all([
    crypto.subtle.deriveBits({ name: "ECDH", public: receiver_key }, pair.privateKey, 256),
    crypto.subtle.exportKey("raw", pair.publicKey),
  ])
  const sender = Buffer.from(exported)
  const agreed = mac(Buffer.from(auth, "base64url"), Buffer.from(shared))
  const secret = mac(salt, expand(agreed, PUSH_INFO, receiver, sender))
  const key = expand(secret, KEY_INFO).subarray(0, 16)
  const cipher = createCipheriv("aes-128-gcm", key, expand(secret, NONCE_INFO).subarray(0, 12))
  const content = [cipher.update(plain), cipher.update(LAST_RECORD), cipher.final()]
  const header = headerOf(salt, plain.length)
  return new Uint8Array(Buffer.concat([header, sender, ...content, cipher.getAuthTag()]))
}

const LAST_RECORD = Buffer.of(2)

/** RFC 8188, section 2.1, up to the key of the sender. */
function headerOf(salt: Uint8Array, plain_bytes: number): Buffer {
  const header = Buffer.alloc(SALT_BYTES + 5)
  header.set(salt)
  // It must be larger than the content, the delimiter and the tag together (RFC 8291, section 4).
  const record = Math.max(USUAL_RECORD_BYTES, plain_bytes + LAST_RECORD.length + TAG_BYTES + 1)
  header.writeUInt32BE(record, SALT_BYTES)
  header[SALT_BYTES + 4] = PUBLIC_KEY_BYTES
  return header
}

/** HKDF (RFC 5869) in its two steps: no key here is longer than one block of it. */
const expand = (key: Uint8Array, ...info: Uint8Array[]) => mac(key, ...info, ONE)
const ONE = Buffer.of(1)

function mac(key: Uint8Array, ...parts: Uint8Array[]): Buffer {
  const hash = new Bun.CryptoHasher("sha256", key)
  for (const part of parts) hash.update(part)
  return hash.digest()
}
