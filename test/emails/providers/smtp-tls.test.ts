import { describe, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { type SmtpOptions, smtp } from "../../../src/emails/providers/smtp"
import { mailTo, RAW } from "../../contracts/email-provider"
import { selfSigned } from "../../fakes/smtp-certificate"
import { smtpSink } from "../../fakes/smtp-sink"

const own = selfSigned("relay.test")
const foreign = selfSigned("relay.test")

/** A foreign SMTP server, with TLS and a login, and what it was given. */
async function relay(options: SMTPServerOptions = {}) {
  const received: { raw: string; secure: boolean; user: unknown }[] = []
  const server = new SMTPServer({
    ...own,
    disableReverseLookup: true,
    onAuth: ({ username, password }, _session, done) => {
      const right = username === "ann" && password === "secret"
      done(right ? null : new Error("wrong password"), right ? { user: username } : {})
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on("data", (chunk: Buffer) => chunks.push(chunk))
      stream.on("end", () => {
        const raw = Buffer.concat(chunks).toString()
        received.push({ raw, secure: session.secure, user: session.user })
        done()
      })
    },
    ...options,
  })
  server.on("error", () => {})
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const port = (server.server.address() as AddressInfo).port
  return { port, received, [Symbol.dispose]: () => server.close(() => {}) }
}

const LOGIN = { username: "ann", password: "secret" }

async function send(port: number, options: Partial<SmtpOptions>) {
  const provider = smtp({ host: "127.0.0.1", port, tls: "starttls", ...LOGIN, ...options })
  const outcome = await provider.send(mailTo("ann@example.test"))
  await provider.close()
  return outcome
}

describe("STARTTLS", () => {
  test("protects login and message, with an authority of the operator's", async () => {
    using server = await relay()

    const outcome = await send(server.port, { ca: own.cert })
    expect(outcome).toMatchObject({ status: "sent", reply: { tls: "TLSv1.3" } })
    expect(server.received).toEqual([{ raw: RAW, secure: true, user: "ann" }])
  })

  test("is refused to a certificate of an unknown authority", async () => {
    using server = await relay()

    for (const options of [{}, { ca: foreign.cert }]) {
      const outcome = await send(server.port, options)
      expect(outcome.status).toBe("retry")
      expect(outcome.reason).toMatch(/certificate|self.signed|tls/i)
    }
    expect(server.received).toEqual([])
  })

  test("is refused to a certificate for another name", async () => {
    using server = await relay()

    const wrong = await send(server.port, { ca: own.cert, servername: "other.test" })
    expect(wrong).toMatchObject({ status: "retry", reason: expect.stringMatching(/altnames|name/) })
    const right = await send(server.port, { ca: own.cert, servername: "relay.test" })
    expect(right.status).toBe("sent")
  })

  test("is insisted on: a server without it gets neither login nor mail", async () => {
    using server = await relay({ hideSTARTTLS: true, allowInsecureAuth: true })

    const outcome = await send(server.port, { ca: own.cert })
    expect(outcome).toMatchObject({ status: "retry", reason: expect.stringMatching("STARTTLS") })
    expect(server.received).toEqual([])
  })

  test("is given up where the server spoke before the handshake, or never shakes hands", async () => {
    const EHLO = "250-sink.test\r\n250 STARTTLS"
    for (const STARTTLS of ["220 go\r\n250 injected", "220 go", "454 not now", "554 never"]) {
      using sink = smtpSink({ EHLO, STARTTLS })
      const outcome = await send(sink.port, { timeouts: { connect: 200 } })
      expect(outcome).toMatchObject({ status: "retry", reply: { tls: null } })
      expect(sink.lines.some((line) => line.startsWith("AUTH"))).toBe(false)
    }
  })

  test("of versions before 1.2 is refused", async () => {
    using server = await relay({ minVersion: "TLSv1", maxVersion: "TLSv1.1" })

    expect(await send(server.port, { ca: own.cert })).toMatchObject({ status: "retry" })
    expect(server.received).toEqual([])
  })
})

describe("TLS from the start", () => {
  test("carries a mail", async () => {
    using server = await relay({ secure: true })

    const outcome = await send(server.port, { tls: "implicit", ca: own.cert })
    expect(outcome).toMatchObject({ status: "sent", reply: { tls: "TLSv1.3" } })
    expect(server.received).toMatchObject([{ secure: true, user: "ann" }])
  })

  test("is refused to an unknown authority, and to a server that speaks plainly", async () => {
    using server = await relay({ secure: true })
    using sink = smtpSink()

    expect(await send(server.port, { tls: "implicit" })).toMatchObject({ status: "retry" })
    expect(await send(sink.port, { tls: "implicit" })).toMatchObject({ status: "retry" })
  })
})

describe("a test of the provider says what helps where", () => {
  const words = async (port: number, options: Partial<SmtpOptions>) => {
    const provider = smtp({ host: "127.0.0.1", port, tls: "starttls", ...LOGIN, ...options })
    const said = await provider.check?.().catch((error: Error) => error.message)
    await provider.close()
    return said
  }

  test("there is no TLS before STARTTLS", async () => {
    using server = await relay()

    expect(await words(server.port, { tls: "implicit" })).toBe(
      "TLS: the server does not begin with TLS on this port. Set tls to starttls",
    )
  })

  test.each(["starttls", "implicit"] as const)(
    "nobody signed the certificate (%s)",
    async (tls) => {
      using server = await relay({ secure: tls === "implicit" })

      const said = await words(server.port, { tls, servername: "relay.test" })
      expect(said).toContain(
        "no authority that is trusted here signed the certificate of relay.test",
      )
      expect(said).toContain("(self signed certificate)")
      expect(said).toContain("NODE_EXTRA_CA_CERTS=")
    },
  )
})

test("a wrong password is the relay's word against us", async () => {
  using server = await relay()

  const outcome = await send(server.port, { ca: own.cert, password: "wrong" })
  expect(outcome).toMatchObject({
    status: "failed",
    code: "provider_error",
    reason: "AUTH: 535 wrong password",
  })
  expect(JSON.stringify(outcome)).not.toContain(Buffer.from("\0ann\0wrong").toString("base64"))
})
