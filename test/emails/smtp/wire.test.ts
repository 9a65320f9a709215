import { describe, expect, test } from "bun:test"
import { createHash, randomBytes } from "node:crypto"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { createServer as createTlsServer } from "node:tls"
import { smtp } from "../../../src/emails/providers/smtp"
import { ReplyReader, SmtpConnection } from "../../../src/emails/smtp/wire"
import { mailTo } from "../../contracts/email-provider"
import { WHOLE_FLOOD } from "../../fakes/flood"
import { selfSigned } from "../../fakes/smtp-certificate"
import { type Script, smtpSink } from "../../fakes/smtp-sink"
import { NEVER_MS, PATIENT } from "../../harness/waits"

const mail = mailTo("ann@example.test")

function open(script: Script = {}) {
  const sink = smtpSink(script)
  const server = { host: "127.0.0.1", port: sink.port, tls: "none" as const }
  const provider = smtp({ ...server, timeouts: PATIENT })
  return {
    sink,
    provider,
    async [Symbol.asyncDispose]() {
      await provider.close()
      sink[Symbol.dispose]()
    },
  }
}

test.each([
  ["no SMTP", "garbage"],
  ["an empty line", ""],
  ["another reply", "250 2.0.0 ok queued"],
  ["a goodbye", "421 4.4.2 bye"],
  ["half a reply", "250-and"],
  ["a line without end", "x".repeat(100_000)],
])("a message that was taken is sent, though %s follows in one breath", async (_, rest) => {
  await using it = open({ end: `250 2.0.0 ok queued\r\n${rest}` })

  const outcome = { status: "sent", reply: { response: "250 2.0.0 ok queued" } }
  expect(await it.provider.send(mail)).toMatchObject(outcome)
  expect(await it.provider.send(mail)).toMatchObject(outcome)
  expect(it.sink.connections()).toBe(2) // nobody knows what such a server says next
})

test("a refusal that was spoken counts, though no SMTP follows it in one breath", async () => {
  for (const RCPT of ["550 5.1.1 nobody\r\ngarbage", "550 5.1.1 nobody\r\n\r\n"]) {
    await using it = open({ RCPT })
    const outcome = { status: "bounced", bounce_subtype: "NoEmail" }
    expect(await it.provider.send(mail)).toMatchObject(outcome)
  }
})

test.each(["greeting", "EHLO", "MAIL", "DATA"])(
  "no message goes to a server that follows its reply to %s with no SMTP",
  async (command) => {
    const usual = { greeting: "220 hi", EHLO: "250 hi", MAIL: "250 ok", DATA: "354 go" }[command]
    await using it = open({ [command]: `${usual}\r\ngarbage` })

    expect(await it.provider.send(mail)).toMatchObject({
      status: "retry",
      reason: expect.stringMatching(/not an SMTP reply: garbage|spoke out of turn/),
    })
    expect(it.sink.received).toEqual([])
  },
)

/** What the buffers of two sockets may hold, though nobody reads them. */
const UNREAD = WHOLE_FLOOD / 4

test("a server that floods replies instead of greeting is cut off", async () => {
  await using it = open({ greeting: "flood" })

  expect(await it.provider.send(mail)).toMatchObject({ status: "retry" })
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
})

test.each(["EHLO", "MAIL", "DATA"])(
  "a server that floods replies instead of answering %s is cut off",
  async (command) => {
    await using it = open({ [command]: "flood" })

    expect(await it.provider.send(mail)).toMatchObject({ status: "retry" })
    expect(await it.sink.poured()).toBeLessThan(UNREAD)
  },
)

test("a server that took a message and floods replies later is cut off, and the mail is sent", async () => {
  await using it = open()

  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  it.sink.pour()
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  expect(it.sink.connections()).toBe(2)
})

test("a server that floods replies instead of saying goodbye is cut off", async () => {
  await using it = open({ QUIT: "flood" })

  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  await it.provider.close()
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
})

test("no more replies are read than were asked for", () => {
  const reader = new ReplyReader()
  const flood = Buffer.from("250 ok\r\n".repeat(5_000))
  expect(reader.push(flood, 3)).toHaveLength(3)
  expect(reader.fault).toBe("the server spoke out of turn")
  expect(reader.push(flood, 3)).toEqual([])
})

test("a flood of consent to a message is consent, and is cut off", async () => {
  await using it = open({ end: "flood" })

  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  expect(await it.sink.poured()).toBeLessThan(UNREAD)
})

const own = selfSigned("relay.test")

/** More than the buffers of two sockets hold. */
const LARGE = randomBytes(32_000_000)
const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex")

describe.each(["plainly", "through TLS"])("to a server that reads slowly, %s,", (way) => {
  /** A connection to a server that does with what comes as `serve` says. */
  async function connected(serve: (socket: Socket) => void) {
    const sockets = new Set<Socket>()
    const take = (socket: Socket) => {
      sockets.add(socket.on("error", () => {}))
      socket.write("220 hi\r\n")
      serve(socket)
    }
    const is_safe = way === "through TLS"
    const server = is_safe ? createTlsServer(own, take) : createServer(take)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    const wire = await SmtpConnection.open(port, "127.0.0.1", NEVER_MS)
    if (is_safe) await wire.secure({ host: "127.0.0.1", ca: own.cert }, NEVER_MS)
    await wire.read("for the greeting", NEVER_MS)
    const leave = () => {
      wire.close()
      for (const socket of sockets) socket.destroy()
      server.close()
    }
    return { wire, [Symbol.dispose]: leave }
  }

  test("every byte comes, in order", async () => {
    const hash = createHash("sha256")
    let left = LARGE.length + "NOOP\r\n".length
    using it = await connected((socket) => {
      socket.on("data", (bytes) => {
        hash.update(bytes)
        left -= bytes.length
        if (left === 0) socket.write("250 taken\r\n250 so was this\r\n")
        socket.pause()
        setImmediate(() => socket.resume())
      })
    })
    expect(await it.wire.send(LARGE, NEVER_MS)).toBe(true)
    it.wire.write(["NOOP"])
    await it.wire.read("for the reply", NEVER_MS)
    expect(hash.digest("hex")).toBe(sha256(Buffer.concat([LARGE, Buffer.from("NOOP\r\n")])))
  })

  test("one that takes no more is given up", async () => {
    using it = await connected((socket) => socket.pause())
    const words = "timed out after 0.1 s for the server to take the message"
    await expect(it.wire.send(LARGE, 100)).rejects.toThrow(words)
    expect(it.wire.alive).toBe(false)
  })

  test("a refusal in the middle ends the message", async () => {
    using it = await connected((socket) => {
      socket.once("data", () => socket.write("552 5.3.4 too large\r\n"))
      socket.once("data", () => socket.pause())
    })
    expect(await it.wire.send(LARGE, NEVER_MS)).toBe(false)
    expect(await it.wire.read("for the reply", NEVER_MS)).toMatchObject({ code: 552 })
  })

  test("one that hangs up is lost", async () => {
    using it = await connected((socket) => socket.once("data", () => socket.destroy()))
    await expect(it.wire.send(LARGE, NEVER_MS)).rejects.toThrow(/closed the connection|ECONNRESET/)
  })
})

test("no name is told to a server that is known by its address alone", async () => {
  const told: string[] = []
  const SNICallback = (name: string, done: (error: null) => void) => {
    told.push(name)
    done(null)
  }
  const server = createTlsServer({ ...own, SNICallback })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  for (const servername of [undefined, "relay.test"]) {
    const wire = await SmtpConnection.open(port, "127.0.0.1", NEVER_MS)
    const names = { host: "127.0.0.1", servername, ca: own.cert }
    expect(await wire.secure(names, NEVER_MS)).toBe("TLSv1.3")
    wire.close()
  }
  server.close()
  expect(told).toEqual(["relay.test"])
})
