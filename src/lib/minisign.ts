import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  sign as signBytes,
  verify as verifyBytes,
} from "node:crypto"

/**
 * Signatures of files in the format of minisign (jedisct1.github.io/minisign, "Signature format"):
 * Ed25519 (RFC 8032) over the BLAKE2b-512 (RFC 7693) of the file, and a trusted comment that is signed
 * with it. The older form, which signs the file itself, is not taken.
 */
export interface MinisignPublicKey {
  /** 16 hex digits, as minisign prints it. */
  id: string
  raw: Buffer
}

export interface MinisignSecretKey extends MinisignPublicKey {
  /** The 32 bytes that the pair is made of. */
  seed: Buffer
}

export interface MinisignSignature {
  key_id: string
  signature: Buffer
  trusted_comment: string
  comment_signature: Buffer
}

type MinisignReason = "malformed" | "other_key" | "wrong_signature"

/** A key or a signature cannot be used. The message says why. */
export class MinisignError extends Error {
  override readonly name = "MinisignError"
  readonly reason: MinisignReason

  constructor(reason: MinisignReason, message: string) {
    super(message)
    this.reason = reason
  }
}

const PREHASHED = "ED"
const LEGACY = "Ed"
const KEY_BYTES = 32
const ID_BYTES = 8
const SIGNATURE_BYTES = 64
const COMMENT = "trusted comment: "
const UNTRUSTED = "untrusted comment: "

/** The key of a file `minisign.pub`, or its second line alone. Throws MinisignError. */
export function readPublicKey(text: string): MinisignPublicKey {
  const line = linesOf(text).findLast((one) => !one.startsWith(UNTRUSTED)) ?? ""
  const bytes = Buffer.from(line, "base64")
  const is_key =
    bytes.length === 2 + ID_BYTES + KEY_BYTES && bytes.toString("latin1", 0, 2) === LEGACY
  if (!is_key) throw new MinisignError("malformed", "The text is not a public key of minisign.")
  return { id: idText(bytes.subarray(2, 10)), raw: bytes.subarray(10) }
}

/** The four lines of a file `.minisig`. Throws MinisignError. */
export function readSignature(text: string): MinisignSignature {
  const [first = "", second = "", third = "", fourth = "", ...more] = linesOf(text)
  const bytes = Buffer.from(second, "base64")
  const comment_signature = Buffer.from(fourth, "base64")
  const is_whole =
    first.startsWith(UNTRUSTED) &&
    third.startsWith(COMMENT) &&
    bytes.length === 2 + ID_BYTES + SIGNATURE_BYTES &&
    comment_signature.length === SIGNATURE_BYTES &&
    more.length === 0
  if (!is_whole) throw new MinisignError("malformed", "The text is not a signature of minisign.")
  if (bytes.toString("latin1", 0, 2) !== PREHASHED)
    throw new MinisignError("malformed", "The signature has the old form, which is not prehashed.")
  return {
    key_id: idText(bytes.subarray(2, 10)),
    signature: bytes.subarray(10),
    trusted_comment: third.slice(COMMENT.length),
    comment_signature,
  }
}

/**
 * Answers the trusted comment when the key signed this digest (`digestOf`) and the comment. Throws
 * MinisignError otherwise.
 */
export function verifyDigest(
  key: MinisignPublicKey,
  given: MinisignSignature,
  digest: Uint8Array,
): string {
  if (given.key_id !== key.id) {
    const message = `The signature is by the key ${given.key_id}, but the key ${key.id} is needed.`
    throw new MinisignError("other_key", message)
  }
  const { signature, trusted_comment, comment_signature } = given
  const public_key = publicKeyOf(key.raw)
  if (!verifyBytes(null, digest, public_key, signature))
    throw new MinisignError("wrong_signature", "The signature does not fit the file.")
  const commented = Buffer.concat([signature, Buffer.from(trusted_comment)])
  if (!verifyBytes(null, commented, public_key, comment_signature))
    throw new MinisignError("wrong_signature", "The signature does not fit its trusted comment.")
  return trusted_comment
}

/** The BLAKE2b-512 of bytes that come in parts. */
export async function digestOf(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const hash = createHash("blake2b512")
  for await (const part of parts) hash.update(part)
  return hash.digest()
}

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

/** minisign prints the id as a little-endian number. */
const idText = (bytes: Uint8Array): string =>
  Buffer.from(bytes).reverse().toString("hex").toUpperCase()

const idBytes = (id: string): Buffer => Buffer.from(id, "hex").reverse()

/** RFC 8410: what stands before the bytes of an Ed25519 key. */
const PUBLIC_HEAD = Buffer.from("302a300506032b6570032100", "hex")
const SECRET_HEAD = Buffer.from("302e020100300506032b657004220420", "hex")

const publicKeyOf = (raw: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, raw]), format: "der", type: "spki" })

const secretKeyOf = (seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([SECRET_HEAD, seed]), format: "der", type: "pkcs8" })

const rawOf = (seed: Uint8Array): Buffer =>
  createPublicKey(secretKeyOf(seed)).export({ format: "der", type: "spki" }).subarray(-KEY_BYTES)
