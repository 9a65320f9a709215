import { expect, test } from "bun:test"

import { CheckedStream, MailCollector, MailMemory } from "../../src/smtp/mail-data"

const MB = 1024 * 1024
const line = `${"x".repeat(1022)}\r\n`

test("a client that sends fast waits while others have their turn", async () => {
  const stream = new CheckedStream()
  const mail = new MailCollector(10 * MB, new MailMemory(20 * MB))
  const arrived = Promise.withResolvers<string>()
  stream.startMail(mail, async () => arrived.resolve("the mail"))
  const chunk = Buffer.from(line.repeat(512))
  const order: string[] = []
  setImmediate(() => order.push("others"))
  for (let sent = 0; sent < 6; sent++) stream.write(chunk)
  stream.write(Buffer.from(".\r\n"))
  expect(stream.writableLength).toBeGreaterThan(MB) // so that the socket is not read meanwhile
  order.push(await arrived.promise)
  expect(order).toEqual(["others", "the mail"])
  expect(mail.size).toBe(3 * MB)
  expect(Buffer.from(await mail.raw()).equals(Buffer.concat(Array(6).fill(chunk)))).toBe(true)
})
