import { openToken, sealToken, type TokenKeys } from "../lib/sealed-token"

/** What the key of tokens is derived for. Tokens are in mail that left long ago: never change it. */
export const TOKEN_PURPOSE = "tracking tokens"

const OPEN = "open"
const CLICK = "click"
const ID_BYTES = 16

/** The token of a message's pixel. `message_id` is a UUID; the token hides it. */
export const openTokenOf = (keys: TokenKeys, message_id: string): string =>
  sealToken(keys, OPEN, bytesOf(message_id))

/** The token of one link: the message and the address that it leads to. */
export const clickTokenOf = (keys: TokenKeys, message_id: string, url: string): string =>
  sealToken(keys, CLICK, Buffer.concat([bytesOf(message_id), Buffer.from(url)]))

/** The message of a pixel; undefined for a token that is not ours. It may end in `.gif`. */
export function readOpenToken(keys: TokenKeys, token: string): string | undefined {
  const content = openToken(keys, OPEN, token.replace(/\.gif$/, ""))
  return content?.length === ID_BYTES ? idOf(content) : undefined
}

/** The message and the address of a link; undefined for a token that is not ours. */
export function readClickToken(
  keys: TokenKeys,
  token: string,
): { message_id: string; url: string } | undefined {
  const content = openToken(keys, CLICK, token)
  if (!content || content.length <= ID_BYTES) return undefined
  return { message_id: idOf(content), url: content.toString("utf8", ID_BYTES) }
}

const bytesOf = (message_id: string) => Buffer.from(message_id.replaceAll("-", ""), "hex")

const idOf = (bytes: Buffer) =>
  bytes.toString("hex", 0, ID_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
