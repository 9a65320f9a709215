import { createPrivateKey, createPublicKey, randomBytes, sign as signBytes } from "node:crypto"
import { MinisignError, type MinisignPublicKey } from "../../src/lib/minisign"

/** The side of minisign that only a release needs: keys, and signatures with them. */
export interface MinisignSecretKey extends MinisignPublicKey {
  /** The 32 bytes that the pair is made of. */
  seed: Buffer
}

const PREHASHED = "ED"
const LEGACY = "Ed"
const KEY_BYTES = 32
const ID_BYTES = 8
const COMMENT = "trusted comment: "
const UNTRUSTED = "untrusted comment: "

/** The text of a file `.minisig`. The trusted comment is one line. */
export function signDigest(
  key: MinisignSecretKey,
  digest: Uint8Array,
  trusted_comment: string,
): string {
  if (/[\r\n]/.test(trusted_comment)) throw new TypeError("the trusted comment is one line")
  const secret = secretKeyOf(key.seed)
  const signature = signBytes(null, digest, secret)
  const head = Buffer.concat([Buffer.from(PREHASHED), idBytes(key.id), signature])
  const commented = Buffer.concat([signature, Buffer.from(trusted_comment)])
  const lines = [
    `${UNTRUSTED}signature from minisign secret key`,
    head.toString("base64"),
    `${COMMENT}${trusted_comment}`,
    signBytes(null, commented, secret).toString("base64"),
  ]
  return `${lines.join("\n")}\n`
}

/** The text of a file `minisign.pub`. */
export function publicKeyText({ id, raw }: MinisignPublicKey): string {
  const bytes = Buffer.concat([Buffer.from(LEGACY), idBytes(id), raw])
  return `${UNTRUSTED}minisign public key ${id}\n${bytes.toString("base64")}\n`
}

/** A new pair. */
export function newKeyPair(): MinisignSecretKey {
  const seed = randomBytes(KEY_BYTES)
  return { id: idText(randomBytes(ID_BYTES)), seed, raw: rawOf(seed) }
}

/** Where the parts of a secret key begin, in bytes. */
const SECRET = { salt: 6, key: 54, end: 158 } as const
/** What such a key begins with: Ed25519, no password, BLAKE2b-256 as its checksum. */
const OPEN = "Ed\0\0B2"
const SEALED = "EdScB2"

/**
 * The key of a file `minisign.key` that was made without a password (`minisign -G -W`). Throws
 * MinisignError.
 */
export function readSecretKey(text: string): MinisignSecretKey {
  const line = linesOf(text).findLast((one) => !one.startsWith(UNTRUSTED)) ?? ""
  const bytes = Buffer.from(line, "base64")
  const head = bytes.toString("latin1", 0, SECRET.salt)
  if (head === SEALED) throw new MinisignError("malformed", WITH_PASSWORD)
  if (bytes.length !== SECRET.end || head !== OPEN)
    throw new MinisignError("malformed", "The text is not a secret key of minisign.")
  const id = bytes.subarray(SECRET.key, SECRET.key + ID_BYTES)
  const seed = bytes.subarray(SECRET.key + ID_BYTES, SECRET.key + ID_BYTES + KEY_BYTES)
  const key = { id: idText(id), seed: Buffer.from(seed), raw: rawOf(seed) }
  if (!pairOf(key).equals(bytes.subarray(SECRET.key, SECRET.key + ID_BYTES + 2 * KEY_BYTES)))
    throw new MinisignError("malformed", "The secret key is damaged.")
  return key
}

const WITH_PASSWORD = "The secret key has a password. Make a key without one, by `minisign -G -W`."

/** The text of a file `minisign.key` without a password. */
export function secretKeyText(key: MinisignSecretKey): string {
  const checksum = new Bun.CryptoHasher("blake2b256").update(LEGACY).update(pairOf(key)).digest()
  const no_password = Buffer.alloc(SECRET.key - SECRET.salt)
  const bytes = Buffer.concat([Buffer.from(OPEN, "latin1"), no_password, pairOf(key), checksum])
  return `${UNTRUSTED}minisign secret key\n${bytes.toString("base64")}\n`
}

const pairOf = ({ id, seed, raw }: MinisignSecretKey) => Buffer.concat([idBytes(id), seed, raw])

const linesOf = (text: string): string[] => text.trim().split(/\r?\n/)

const idText = (bytes: Uint8Array): string =>
  Buffer.from(bytes).reverse().toString("hex").toUpperCase()

const idBytes = (id: string): Buffer => Buffer.from(id, "hex").reverse()

/** RFC 8410: what stands before the bytes of an Ed25519 key. */
const SECRET_HEAD = Buffer.from("302e020100300506032b657004220420", "hex")

const secretKeyOf = (seed: Uint8Array) =>
  createPrivateKey({ key: Buffer.concat([SECRET_HEAD, seed]), format: "der", type: "pkcs8" })

const rawOf = (seed: Uint8Array): Buffer =>
  createPublicKey(secretKeyOf(seed)).export({ format: "der", type: "spki" }).subarray(-KEY_BYTES)
