/** What the codes of OpenSSL and of the runtime say of a certificate that is not trusted. */
const WORDS: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "self-signed certificate",
  SELF_SIGNED_CERT_IN_CHAIN: "unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unknown authority, or an incomplete chain",
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "made for another name",
}

/** Why a certificate is not trusted, in words; a code that is not known stays as it is. */
export const certificateFault = (code: string): string => WORDS[code] ?? code
