/** What OpenSSL says of a certificate that leads to nobody it knows. */
const UNTRUSTED =
  /self[- ]signed certificate|unable to (?:get|verify)|certificate not (?:trusted|accepted)/i

const NOT_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/

/** The end of the handshake was ours: the certificate is good for nobody who is trusted here. */
export const isUntrusted = (words: string): boolean => UNTRUSTED.test(words)

/** What helps where a relay's certificate is one of the house. */
export const TRUST_ADVICE =
  "Use a certificate of a known authority, or start Belfry with NODE_EXTRA_CA_CERTS=<PEM file of your authority>."

/** Why a handshake failed, in words that name the server; `at_once` without STARTTLS before it. */
export function tlsWords(words: string, name: string, at_once: boolean): string {
  if (NOT_TLS.test(words)) {
    return at_once
      ? "TLS: the server does not begin with TLS on this port. Set tls to starttls"
      : "TLS: the server did not answer with TLS after STARTTLS"
  }
  if (!isUntrusted(words)) return words
  const why = words.replace(/^tls: /i, "")
  return `TLS: no authority that is trusted here signed the certificate of ${name} (${why})`
}
