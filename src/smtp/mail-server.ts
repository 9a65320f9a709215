import { sleep } from "../core/time"
import { MailPort } from "./mail-port"
import { type MailServerCounts, MailServerState } from "./mail-server-state"
import type { MailServerOptions } from "./mail-session"

export interface MailServer {
  port: number
  implicit_port: number | null
  isListening(): boolean
  counts(): MailServerCounts
  /** From now on new clients and new commands get 421. Mails that are being received go on. */
  drain(): void
  /** Drains, waits for what runs, and closes every connection after `drain_ms`. */
  close(drain_ms: number): Promise<void>
}

/**
 * Opens a mail server on its port, and on a second one that begins with TLS where it is wanted.
 * Rejects where a port is taken or refused (`EADDRINUSE`, `EACCES`).
 */
export async function openMailServer<Identity>(
  given: MailServerOptions<Identity>,
): Promise<MailServer> {
  const options = given as unknown as MailServerOptions // handlers get back what they gave
  const state = new MailServerState(options)
  const ports = [
    new MailPort(state, options.listen, false),
    ...(options.implicit ? [new MailPort(state, options.implicit, true)] : []),
  ]
  try {
    for (const port of ports) await port.open()
  } catch (error) {
    await Promise.all(ports.map((port) => port.shut()))
    throw error
  }
  const forgetCertificate = options.certificate.onChange(() => {
    for (const port of ports) port.renew(options.certificate.current())
  })
  const looking = setInterval(() => state.look(), state.look_ms)
  looking.unref()
  const [plain, implicit] = ports
  let closed: Promise<void> | undefined
  const close = async (drain_ms: number) => {
    state.drain()
    const gone = Promise.all(ports.map((port) => port.shut()))
    await Promise.race([state.emptied(), sleep(drain_ms)])
    state.destroy()
    await gone
    clearInterval(looking)
    forgetCertificate()
  }
  return {
    port: plain?.port ?? 0,
    implicit_port: implicit?.port ?? null,
    isListening: () => ports.every((port) => port.library.server.listening),
    counts: () => state.counts(),
    drain: () => state.drain(),
    close: (drain_ms) => {
      closed ??= close(drain_ms)
      return closed
    },
  }
}
