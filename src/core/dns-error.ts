/** The question stays open (`transient`), or the name cannot be asked for at all. */
export class DnsError extends Error {
  override readonly name = "DnsError"
  readonly transient: boolean

  constructor(message: string, transient: boolean) {
    super(message)
    this.transient = transient
  }
}
