import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from "node:crypto"
import { bytesOfId, uuidOfBytes } from "../core/ids"

/** What the key of tokens is derived for. Tokens are in mail that left long ago: never change it. */
export const TOKEN_PURPOSE = "tracking tokens"

const OPEN = "open"
const CLICK = "click"
const ID_BYTES = 16

/** The token of a message's pixel. `message_id` is a UUID; the token hides it. */
export const openTokenOf = (keys: TokenKeys, message_id: string): string =>
  sealToken(keys, OPEN, bytesOfId(message_id))

/** The token of one link: the message and the address that it leads to. */
export const clickTokenOf = (keys: TokenKeys, message_id: string, url: string): string =>
  sealToken(keys, CLICK, Buffer.concat([bytesOfId(message_id), Buffer.from(url)]))

/** The message of a pixel; undefined for a token that is not ours. It may end in `.gif`. */
export function readOpenToken(keys: TokenKeys, token: string): string | undefined {
  const content = openToken(keys, OPEN, token.replace(/\.gif$/, ""))
  return content?.length === ID_BYTES ? uuidOfBytes(content) : undefined
}

/** The message and the address of a link; undefined for a token that is not ours. */
export function readClickToken(
  keys: TokenKeys,
  token: string,
): { message_id: string; url: string } | undefined {
  const content = openToken(keys, CLICK, token)
  if (!content || content.length <= ID_BYTES) return undefined
  return { message_id: uuidOfBytes(content), url: content.toString("utf8", ID_BYTES) }
}

/** 128 bits (contract 20, section 4). */
const MAC_BYTES = 16

/** Of base64url. Longer texts are no tokens of ours. */
const MOST_CHARACTERS = 12_288

const FORM = /^[A-Za-z0-9_-]+$/

/** What tokens are made with: two keys that were derived from one. */
export interface TokenKeys {
  mac: Uint8Array
  cipher: Uint8Array
}

/** The two keys of a base key of 32 bytes. */
export const tokenKeys = (base: Uint8Array): TokenKeys => ({
  mac: createHmac("sha256", base).update("mac").digest(),
  cipher: createHmac("sha256", base).update("cipher").digest(),
})

/**
 * A text that hides `content` and cannot be made up, the same each time: its MAC, which is the
 * initial value of the cipher as well (the construction of RFC 5297), then the content, encrypted. The
 * token of one kind is no token of another.
 */
export function sealToken({ mac, cipher }: TokenKeys, kind: string, content: Uint8Array): string {
  const seal = macOf(mac, kind, content)
  const body = createCipheriv("aes-256-ctr", cipher, seal).update(content)
  return Buffer.concat([seal, body]).toString("base64url")
}

/** The content; undefined for every text that `sealToken` did not make with this key and kind. */
export function openToken(
  { mac, cipher }: TokenKeys,
  kind: string,
  token: string,
): Buffer | undefined {
  if (token.length > MOST_CHARACTERS || !FORM.test(token)) return undefined
  const bytes = Buffer.from(token, "base64url")
  if (bytes.length <= MAC_BYTES) return undefined
  const seal = bytes.subarray(0, MAC_BYTES)
  const content = createDecipheriv("aes-256-ctr", cipher, seal).update(bytes.subarray(MAC_BYTES))
  if (!timingSafeEqual(seal, macOf(mac, kind, content))) return undefined
  // Decoding forgives spare bits in the last character; only the spelling that was made may pass.
  return bytes.toString("base64url") === token ? content : undefined
}

const macOf = (key: Uint8Array, kind: string, content: Uint8Array): Buffer =>
  createHmac("sha256", key).update(`${kind}\n`).update(content).digest().subarray(0, MAC_BYTES)
