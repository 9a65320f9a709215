/** The package has no types of its own. */
declare module "http_ece" {
  import type { ECDH } from "node:crypto"

  interface Keys {
    version: "aes128gcm"
    privateKey: ECDH
    authSecret: string
  }
  const ece: { decrypt(sealed: Buffer, keys: Keys): Buffer }
  export default ece
}
