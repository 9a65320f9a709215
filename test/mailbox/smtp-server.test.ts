import { expect, test } from "bun:test"
import { connect } from "node:net"
import { isOurs } from "../../src/core/destination"
import { newId } from "../../src/core/ids"
import { openMailbox } from "../../src/mailbox/smtp-server"
import { openTestMailbox } from "./open-mailbox"

/** Says the lines one after another, each after a reply, and gives what the server said. */
function talk(port: number, lines: string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = connect({ port, host: "127.0.0.1" })
  const rest = [...lines]
  let said = ""
  socket.on("data", (chunk: Buffer) => {
    said += chunk.toString()
    if (!/^\d{3} .*\r\n$/m.test(chunk.toString())) return
    const line = rest.shift()
    if (line === undefined) socket.end()
    else socket.write(`${line}\r\n`)
  })
  socket.on("error", reject)
  socket.on("close", () => resolve(said))
  return promise
}

const START = ["EHLO me.test", "MAIL FROM:<a@b.test>", "RCPT TO:<ann@example.test>", "DATA"]

test("what other servers send is taken, and nobody reads two messages in one", async () => {
  await using it = await openTestMailbox()

  const smuggled = "Subject: x\r\n\r\na\n.\nMAIL FROM:<x@y.test>"
  const bodies = [smuggled, "a\rb", "a\r\r\nb", "a".repeat(9000), "Received: from a\r\n".repeat(21)]
  for (const body of bodies) {
    expect(await talk(it.server.port, [...START, `${body}\r\n.`])).toContain("250 2.6.0")
  }
  const bare = [
    ...START.with(1, "MAIL FROM: a..b@b.test").with(2, 'RCPT TO:<"a b"@c.test>'),
    "x\r\n.",
  ]
  expect(await talk(it.server.port, bare)).toContain("250 2.6.0")
  expect((await it.list()).total).toBe(bodies.length + 1)
  expect((await it.list({ to: '"a b"@c.test' })).total).toBe(1)
})

test("nobody can make us call it by a URL", async () => {
  const it = await openTestMailbox()
  const { port } = it.server
  expect(isOurs("127.0.0.1", port)).toBe(true)
  await it[Symbol.asyncDispose]()
  expect(isOurs("127.0.0.1", port)).toBe(false)
})

test("a message over the limit is refused before and after it was sent", async () => {
  await using it = await openTestMailbox()

  const large = Buffer.alloc(15_728_641, "a".repeat(76).concat("\r\n"))
  const raw = large.subarray(0, large.lastIndexOf("\r\n") + 2)
  const mail = { message_id: newId(), project_id: newId(), from: "a@b.test", smtputf8: false }
  const to = ["ann@example.test"]
  const refused = await it.provider.send({ ...mail, to, raw: Buffer.concat([raw, raw]) })
  expect(refused).toMatchObject({ status: "bounced", bounce_subtype: "MessageTooLarge" })

  const said = await talk(it.server.port, [...START, `${"a\r\n".repeat(5_300_000)}.`])
  expect(said).toContain("552 5.3.4")
  expect((await it.list()).total).toBe(0)

  const fits = raw.subarray(0, 15_000_000 - (15_000_000 % 78))
  expect(await it.provider.send({ ...mail, to, raw: fits })).toMatchObject({ status: "delivered" })
})

test("addresses outside ASCII and the null sender are welcome", async () => {
  await using it = await openTestMailbox()

  const wide = await it.send(newId(), "jörg@münchen.de")
  expect(wide).toMatchObject({ status: "delivered", address: "jörg@münchen.de" })
  expect((await it.list({ to: "jörg@münchen.de" })).total).toBe(1)
  const said = await talk(it.server.port, [
    "EHLO me.test",
    "MAIL FROM:<>",
    "RCPT TO:<ann@example.test>",
    "DATA",
    "Subject: report\r\n\r\n.",
  ])
  expect(said).toContain("250 2.6.0")
})

test("a port that is taken is an error", async () => {
  await using it = await openTestMailbox()

  const { store, secrets, blobs, server } = it
  const listen = { host: "127.0.0.1", port: server.port }
  const complained = async () => {}
  expect(openMailbox({ store, secrets, blobs, listen, complained })).rejects.toThrow()
})

test("closing does not wait for clients that stay", async () => {
  await using it = await openTestMailbox()

  await it.send(newId(), "ann@example.test")
  const idle = connect({ port: it.server.port, host: "127.0.0.1" })
  const ended = new Promise((resolve) => idle.once("close", resolve))
  await new Promise((resolve) => idle.once("data", resolve))
  const slow = it.send(newId(), "slow@mailbox.test")
  await it.server.close()
  await ended
  expect((await slow).status).toBe("retry")
})
