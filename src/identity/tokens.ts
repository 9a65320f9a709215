import { randomBytes } from "node:crypto"

type Kind = "refresh" | "mfa" | "device" | "reset" | "setup" | "invitation"

/** `belfry_<kind>_` and 256 random bits; the log masks whatever looks like it. */
export const newToken = (kind: Kind): string =>
  `belfry_${kind}_${randomBytes(32).toString("base64url")}`

/** There are 256 random bits in a token, so that a plain hash is enough: nothing to guess. */
export const hashOfToken = (token: string): string =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex")
