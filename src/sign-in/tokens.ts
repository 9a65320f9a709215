import { randomBytes } from "node:crypto"

export type TokenKind =
  | "refresh"
  | "mfa"
  | "device"
  | "reset"
  | "setup"
  | "invitation"
  | "link"
  | "page"
  | "ticket"
  | "magic"
  | "verify"
  | "code"

/** `belfry_<kind>_` and 256 random bits; the log masks every text of this form. */
export const newToken = (kind: TokenKind): string =>
  `belfry_${kind}_${randomBytes(32).toString("base64url")}`

/** There are 256 random bits in a token, so that a plain hash is enough: nothing to guess. */
export const hashOfToken = (token: string): string =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex")

/** As many letters of the alphabet, all equally likely: bytes beyond its last whole round are dropped. */
export function randomLetters(alphabet: string, length: number): string {
  const fair = 256 - (256 % alphabet.length)
  let text = ""
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < fair && text.length < length) text += alphabet[byte % alphabet.length]
    }
  }
  return text
}
