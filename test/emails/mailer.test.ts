import { afterAll, expect, spyOn, test } from "bun:test"
import { composeMail } from "../../src/emails/compose-task"
import { Mailer } from "../../src/emails/mailer"
import { SmtpClient } from "../../src/emails/smtp/smtp-client"
import { SmtpConnectionError } from "../../src/emails/smtp/wire"
import { mailTo } from "../contracts/email-provider"
import { type Script, smtpSink } from "../fakes/smtp-sink"
import { until } from "../harness/hooks"
import { quietLog } from "../harness/quiet"
import { PATIENT } from "../harness/waits"
import { MAIL } from "./composed"

const logged = quietLog()

const mailer = new Mailer()
afterAll(() => mailer.end("the tests are over"))

const LIMITS = { max_connections: 20, idle: 20_000, queue: 20_000 }

/** As in `emails/mailer.ts`: how often it looks for a sign of life, and how often in vain. */
const LOOK_MS = 5_000
const LOOKS = 4

function open(script: Script = {}, limits = LIMITS, by = mailer) {
  const sink = smtpSink(script)
  const server = { host: "127.0.0.1", port: sink.port, tls: "none" as const, timeouts: PATIENT }
  const client = new SmtpClient(server, limits, by)
  return {
    sink,
    client,
    async [Symbol.asyncDispose]() {
      await client.close()
      sink[Symbol.dispose]()
    },
  }
}

const unmade = (mail = MAIL) => ({
  ...mailTo("ann@example.test"),
  raw: { mail, recipe: undefined },
})

test("the thread composes what it sends, and tells the recipe of it", async () => {
  await using it = open()
  const mail = unmade()
  const answer = await it.client.send(mail, false)
  expect(answer).toMatchObject({ used: 1, tls: null, transaction: { end: { code: 250 } } })
  const { raw, recipe } = await composeMail(MAIL)
  expect(it.sink.received.map(String)).toEqual([Buffer.from(raw).toString().trimEnd()])
  expect(mail.raw.recipe as unknown).toEqual(recipe)
})

test("a mail that is sent once more is composed by its recipe, and other bytes never leave", async () => {
  await using it = open()
  const mail = unmade()
  await it.client.send(mail, false)
  await it.client.send(mail, false)
  expect(new Set(it.sink.received.map(String)).size).toBe(1)
  mail.raw.mail = { ...MAIL, subject: "Dong" }
  const [other] = await Promise.allSettled([it.client.send(mail, false)])
  expect(other).toMatchObject({ reason: { name: "MailNotMade", cause: { name: "ChangedBytes" } } })
  await it.client.send(unmade(), false)
  expect(it.sink.received).toHaveLength(3)
})

test("a mail that cannot be composed says so to its caller alone", async () => {
  await using it = open()
  const [bad, good] = await Promise.allSettled([
    it.client.send(unmade({ ...MAIL, subject: "a\rb" }), false),
    it.client.send(unmade(), false),
  ])
  expect(bad).toMatchObject({ reason: { name: "MailNotMade", cause: { name: "Uncomposable" } } })
  expect(good).toMatchObject({ value: { transaction: { end: { code: 250 } } } })
})

test("orders of one turn go together, and so do their answers", async () => {
  await using it = open()
  await it.client.send(unmade(), false)
  const posted: unknown[][] = []
  const post = Worker.prototype.postMessage
  Worker.prototype.postMessage = function (this: Worker, message: unknown[], ...rest: []) {
    posted.push(message)
    return post.call(this, message, ...rest)
  }
  try {
    await Promise.all(Array.from({ length: 20 }, () => it.client.send(unmade(), false)))
  } finally {
    Worker.prototype.postMessage = post
  }
  expect(posted.map((orders) => orders.length)).toEqual([20])
})

test("where the thread dies, what it had in hand may have left, and the next mail gets another thread", async () => {
  await using it = open()
  await using stuck = open({ DATA: "stall" })
  const hanging = stuck.client.send(mailTo("ann@example.test"), false)
  await until(() => stuck.sink.lines.includes("DATA"))
  mailer.end("the test says so")
  expect(await hanging).toMatchObject({
    used: 0,
    error: { name: "MailerDied", message: "the mailer thread died" },
  })
  expect(logged().join()).toContain("the mailer thread died")
  expect(mailer.open).toBe(0)
  expect(await it.client.send(unmade(), false)).toMatchObject({
    transaction: { end: { code: 250 } },
  })
})

test("a thread that answers lives however long its order takes, and a silent one is ended", async () => {
  const own = new Mailer()
  const looks = spyOn(globalThis, "setTimeout")
  const look = () => {
    const [next] = looks.mock.calls.filter(([, ms]) => ms === LOOK_MS).slice(-1)
    next?.[0]()
  }
  await using stuck = open({ DATA: "stall" }, LIMITS, own)
  const hanging = stuck.client.send(mailTo("ann@example.test"), false)
  await until(() => stuck.sink.lines.includes("DATA"))
  for (let at = 0; at < 3 * LOOKS; at++) {
    look()
    await until(() => own.open === 1)
  }
  const post = spyOn(Worker.prototype, "postMessage").mockImplementation(() => {})
  for (let at = 0; at < LOOKS; at++) look()
  expect(own.open).toBeGreaterThan(1)
  look()
  looks.mockRestore()
  post.mockRestore()
  expect(await hanging).toMatchObject({ error: { name: "MailerDied" } })
  expect(logged().join()).toContain("it was silent for 20 s")
})

test("a server that was closed gets nothing more", async () => {
  await using it = open()
  await it.client.send(unmade(), false)
  await it.client.close()
  const { error } = await it.client.send(unmade(), false)
  expect(error).toBeInstanceOf(SmtpConnectionError)
  expect(error?.message).toBe("the provider was closed")
  expect(it.sink.received.length).toBe(1)
})

test("the address of a server that names one is asked for each connection", async () => {
  using sink = smtpSink()
  let asked = 0
  const server = { host: "relay.example.test", port: sink.port, tls: "none" as const }
  const resolveHost = async () => {
    if (++asked > 1) throw new Error("not allowed")
    return "127.0.0.1"
  }
  const client = new SmtpClient({ ...server, timeouts: PATIENT, resolveHost }, LIMITS, mailer)
  expect((await client.send(unmade(), true)).transaction?.end?.code).toBe(250)
  expect(await client.send(unmade(), true)).toMatchObject({ error: { message: "not allowed" } })
  await client.close()
})
