import { type KeyObject, sign } from "node:crypto"

/** Signs `data` with an RSA key: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, 8.2). */
export type RsaSign = (data: Uint8Array, key: KeyObject) => Buffer

/** What the runtime brings along, on every machine. */
export const builtIn: RsaSign = (data, key) => sign("sha256", data, key)
