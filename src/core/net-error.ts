export type NetErrorKind =
  | "timeout"
  | "dns"
  | "tls"
  | "connection"
  | "blocked_address"
  | "invalid_url"

/** No answer was received, and why. The message carries no header and no body. */
export class NetError extends Error {
  override readonly name = "NetError"
  readonly kind: NetErrorKind

  constructor(kind: NetErrorKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}
