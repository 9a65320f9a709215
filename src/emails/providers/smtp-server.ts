import { SmtpConnectionError, type TlsNames } from "../smtp/wire"

export interface SmtpServer extends TlsNames {
  port: number
  username?: string | undefined
  password?: string | undefined
  /**
   * `starttls` insists on it: a server that does not offer it gets no mail. `opportunistic` takes it
   * where it is offered, and believes any certificate (RFC 7435).
   */
  tls: "starttls" | "implicit" | "none" | "opportunistic"
  /** The name given in EHLO; else that of the machine. */
  ehlo_name?: string | undefined
  /** The address to connect to, judged for each connection; else the host is resolved freely. */
  reach?: (() => Promise<string>) | undefined
  timeouts: Timeouts
}

/** In milliseconds, each for one phase; `reply` for one reply, however slowly it drips. */
export interface Timeouts {
  connect: number
  greeting: number
  reply: number
  /** From the end of the message to the reply about it. */
  accepted: number
}

/** Where to connect to. Rejects with Trouble where that is refused or cannot be found out. */
export const addressOf = async ({ host, reach }: SmtpServer): Promise<string> => {
  if (!reach) return host
  return reach().catch((error: Error) => {
    throw new SmtpConnectionError("connection", error.message)
  })
}
