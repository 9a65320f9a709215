/** What OpenSSL says of a certificate that leads to nobody it knows. */
const UNTRUSTED =
  /self[- ]signed certificate|unable to (?:get|verify)|certificate not (?:trusted|accepted)/i

const NOT_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/

/** The end of the handshake was ours: the certificate is good for nobody who is trusted here. */
export const isUntrusted = (words: string): boolean => UNTRUSTED.test(words)

/** What helps where a relay's certificate is one of the house. */
export const TRUST_ADVICE =
  "Let a known authority sign it, or start Belfry with NODE_EXTRA_CA_CERTS=<PEM file of its own one>."

/** Why a handshake failed, in words that name the server; `at_once` without STARTTLS before it. */
export function tlsWords(words: string, name: string, at_once: boolean): string {
  if (NOT_TLS.test(words)) {
    return at_once
      ? "TLS: the server speaks no TLS at once on this port: set tls to starttls"
      : "TLS: what the server said after STARTTLS is no TLS"
  }
  if (!isUntrusted(words)) return words
  const why = words.replace(/^tls: /i, "")
  return `TLS: the certificate of ${name} is signed by no authority that is trusted here (${why})`
}
