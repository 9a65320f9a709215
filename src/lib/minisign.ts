import { createHash, createPublicKey, type KeyObject, verify as verifyBytes } from "node:crypto"

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

interface MinisignSignature {
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
export async function digestOf(
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<Buffer> {
  const hash = createHash("blake2b512")
  for await (const part of parts) hash.update(part)
  return hash.digest()
}

const linesOf = (text: string): string[] => text.trim().split(/\r?\n/)

/** minisign prints the id as a little-endian number. */
const idText = (bytes: Uint8Array): string =>
  Buffer.from(bytes).reverse().toString("hex").toUpperCase()

/** RFC 8410: what stands before the bytes of an Ed25519 key. */
const PUBLIC_HEAD = Buffer.from("302a300506032b6570032100", "hex")

const publicKeyOf = (raw: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, raw]), format: "der", type: "spki" })
