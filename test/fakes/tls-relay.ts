import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SMTPServer } from "smtp-server"
import { selfSigned } from "./smtp-certificate"

/** A mail that the relay took. */
export interface RelayedMail {
  raw: string
  /** It came after STARTTLS. */
  is_secure: boolean
  /** `user:password`, as the client gave them. */
  login: string
}

/** Somebody's relay on the loopback: it wants STARTTLS, then any login. Its certificate signs itself. */
export async function startTlsRelay(name: string) {
  const received: RelayedMail[] = []
  const own = selfSigned(name)
  const folder = mkdtempSync(join(tmpdir(), "belfry-relay-"))
  const authority = join(folder, "cert.pem")
  writeFileSync(authority, own.cert)
  const server = new SMTPServer({
    ...own,
    disableReverseLookup: true,
    onAuth: ({ username, password }, _session, done) =>
      done(null, { user: `${username}:${password}` }),
    async onData(stream, { secure, user }, done) {
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk)
      const raw = Buffer.concat(chunks).toString()
      received.push({ raw, is_secure: secure, login: String(user) })
      done()
    },
  })
  server.on("error", () => {})
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    /** The PEM file of its certificate, for programs that are to trust it. */
    authority,
    [Symbol.dispose]() {
      server.close(() => {})
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
