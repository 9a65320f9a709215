import { expect, test } from "bun:test"
import { smtp } from "../../../src/emails/providers/smtp"
import { ConnectionPool } from "../../../src/emails/smtp/pool"
import { mailTo } from "../../contracts/email-provider"
import { type Script, smtpSink } from "../../fakes/smtp-sink"
import { PATIENT, waitsFor } from "../../harness/waits"

const mail = mailTo("ann@example.test")

function open(script: Script = {}, limits = {}) {
  const sink = smtpSink(script)
  const timeouts = waitsFor(script)
  const provider = smtp({ host: "127.0.0.1", port: sink.port, tls: "none", timeouts, limits })
  return {
    sink,
    provider,
    async [Symbol.asyncDispose]() {
      await provider.close()
      sink[Symbol.dispose]()
    },
  }
}

test("one connection carries one message after another", async () => {
  await using it = open()

  for (let count = 0; count < 5; count++) {
    expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  }
  expect(it.sink.connections()).toBe(1)
})

test("a refused message does not cost the connection", async () => {
  const RCPT = (line: string) => (line.includes("no@") ? "550 5.1.1 nobody" : undefined)
  await using it = open({ RCPT })

  expect(await it.provider.send(mailTo("no@example.test"))).toMatchObject({ status: "bounced" })
  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  expect(it.sink.connections()).toBe(1)
  expect(it.sink.lines).toContain("RSET")
})

test("never more connections than allowed, and everybody gets a turn", async () => {
  await using it = open({}, { max_connections: 3 })

  const outcomes = await Promise.all(Array.from({ length: 30 }, () => it.provider.send(mail)))
  expect(outcomes.every(({ status }) => status === "sent")).toBe(true)
  expect(it.sink.connections()).toBe(3)
})

test("who waits too long for a connection had no attempt", async () => {
  await using it = open({ end: "stall" }, { max_connections: 1, queue: 50 })

  const [, second] = await Promise.allSettled([it.provider.send(mail), it.provider.send(mail)])
  expect(second).toMatchObject({ status: "rejected", reason: { name: "PoolBusy" } })
})

test("a warm connection that the server closed is replaced without an attempt lost", async () => {
  await using it = open()

  await it.provider.send(mail)
  it.sink.hangUp()
  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  await Bun.sleep(10)
  it.sink.hangUp()
  await Bun.sleep(10)
  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  expect(it.sink.received).toHaveLength(3)
})

test.each(["421 4.7.0 that was enough", "drop", "half-close"])(
  "a server that answers the second MAIL with %p gets it on a new connection",
  async (answer) => {
    let mails = 0
    await using it = open({ MAIL: () => (++mails === 2 ? answer : undefined) })

    await it.provider.send(mail)
    expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
    expect(it.sink.connections()).toBe(2)
    expect(it.sink.received).toHaveLength(2)
  },
)

test("a server that always refuses with 421 is asked again later, not for ever", async () => {
  let mails = 0
  await using it = open({ MAIL: () => (++mails > 1 ? "421 4.7.0 no more" : undefined) })

  await it.provider.send(mail)
  expect(await it.provider.send(mail)).toMatchObject({ status: "retry" })
  expect(mails).toBe(3)
})

test("a connection that idles too long is closed politely", async () => {
  await using it = open({}, { idle: 20 })

  await it.provider.send(mail)
  while (!it.sink.lines.includes("QUIT")) await Bun.sleep(5)
  expect(await it.provider.send(mail)).toMatchObject({ status: "sent" })
  expect(it.sink.connections()).toBe(2)
})

test("closing cuts what is under way, which comes out as retry", async () => {
  await using it = open({ end: "stall" }, { max_connections: 1 })

  const sending = [it.provider.send(mail), it.provider.send(mail)]
  while (!it.sink.lines.includes("DATA")) await Bun.sleep(5)
  await it.provider.close()
  expect((await Promise.all(sending)).map(({ status }) => status)).toEqual(["retry", "retry"])
})

test("a connection that opens after its pool was closed carries no mail", async () => {
  using sink = smtpSink()
  const address = Promise.withResolvers<string>()
  const limits = { max_connections: 1, idle: 20_000, queue: 20_000 }
  const server = { host: "relay.test", port: sink.port, tls: "none" as const, timeouts: PATIENT }
  const pool = new ConnectionPool({ ...server, resolveHost: () => address.promise }, limits)
  const opening = pool.acquire([], { fresh: false })
  await pool.close()
  address.resolve("127.0.0.1")
  expect(opening).rejects.toThrow("the provider was closed")
})

test("two connections that become free together wake two who wait", async () => {
  using sink = smtpSink({})
  const server = { host: "127.0.0.1", port: sink.port, tls: "none" as const, timeouts: PATIENT }
  const pool = new ConnectionPool(server, { max_connections: 2, idle: 1_000, queue: 300 })
  const acquire = () => pool.acquire([], { fresh: false })
  const held = await Promise.all([acquire(), acquire()])
  const waiting = [acquire(), acquire()]
  for (const session of held) pool.release(session)

  const got = await Promise.all(waiting)
  expect(new Set(got).size).toBe(2)
  for (const session of got) pool.release(session)
  await pool.close()
})
