import { randomBytes } from "node:crypto"
import type { EnvironmentName } from "./tables"

const PUBLIC_BYTES = 24
const SECRET_BYTES = 32

/** What an app shows to everybody. Without an environment it is a legacy key. */
export const newPublicKey = (environment: EnvironmentName | null): string => {
  const bound = environment === null ? "" : `${environment}_`
  return `svca_${bound}pub_${randomBytes(PUBLIC_BYTES).toString("base64url")}`
}

/** The secret of an application. The table knows only its hash. */
export const newApplicationSecret = (): string =>
  `svca_sec_${randomBytes(SECRET_BYTES).toString("base64url")}`

/** There are 256 random bits in a secret, so a plain hash is enough: there is nothing to guess. */
export const hashOfSecret = (secret: string): string => Bun.SHA256.hash(secret, "hex")
