const BYTES = 32
const FORM = /^[A-Za-z0-9_-]{43}$/

/** 256 random bits, fit for an address. */
export const newToken = (): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(BYTES))).toString("base64url")

export const isToken = (text: string): boolean => FORM.test(text)

/** There is nothing to guess in 256 random bits, so a plain hash is enough. */
export const hashOf = (token: string): string =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex")
