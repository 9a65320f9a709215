/** A pair in PEM. The certificate may carry its chain behind it. */
export interface KeyPair {
  key: string
  cert: string
}

/** The certificate of the servers of this process. It may change while they run. */
export interface Certificate {
  /** Undefined where there is none: then the servers offer no TLS. */
  current(): KeyPair | undefined
  /** Called after each change. Returns how to stop listening. */
  onChange(listener: () => void): () => void
}
