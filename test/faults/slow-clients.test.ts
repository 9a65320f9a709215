import { expect, test } from "bun:test"
import { countingRelay } from "../fakes/counting-relay"
import { type Belfry, startBelfry } from "../harness/binary"
import { freePort } from "../harness/ports"
import { sizes } from "../harness/sizes"
import { SmtpDialogue } from "../harness/smtp-dialogue"
import { relaySettings, startServe } from "../scenarios/serve"
import {
  idOf,
  MAIL_HOST,
  type MailPort,
  messageId,
  offer,
  openClient,
  rawMail,
} from "./mail-clients"
import { slowClients, spread } from "./slow-clients"

const SLOW_OF_A_PORT = sizes.slow_clients
const GOOD_MAILS = 40

/** Mails of one client, one after another, each on a new or on the old connection. */
async function goodClient(server: Belfry, port: MailPort, name: string) {
  let it = await openClient(server, port)
  const ids: string[] = []
  for (let at = 0; at < GOOD_MAILS; at++) {
    if (at % 10 === 9) {
      it[Symbol.dispose]()
      it = await openClient(server, port)
    }
    ids.push(idOf(await offer(it, port, rawMail(port, `${name}-${at}`, 2000))))
  }
  it[Symbol.dispose]()
  return ids
}

test(`${2 * SLOW_OF_A_PORT} slow clients, and the good ones are served`, async () => {
  using relay = countingRelay()
  const limits = {
    BELFRY_SMTP_HOST: MAIL_HOST,
    BELFRY_SMTP_INBOUND_MAX_CONNECTIONS: "3000",
    BELFRY_SMTP_SUBMISSION_MAX_CONNECTIONS: "3000",
  }
  await using server = await startBelfry({ env: relaySettings(relay.port, limits) })
  const ports = ["inbound", "submission"] as const
  const [received, submitted] = await Promise.all(
    ports.map((kind, at) =>
      slowClients({
        ...{ kind, port: server.smtp[kind] ?? 0, count: SLOW_OF_A_PORT },
        from: spread(20 + at, 10), // within the limits of an address
      }),
    ),
  )
  if (!received || !submitted) throw new Error("there are two of them")
  using _received = received
  using _submitted = submitted
  expect([received.open(), submitted.open()]).toEqual([SLOW_OF_A_PORT, SLOW_OF_A_PORT])

  const good = await Promise.all(
    ports.flatMap((port) => [
      goodClient(server, port, `${port}-a`),
      goodClient(server, port, `${port}-b`),
    ]),
  )
  for (const ids of good) expect(new Set(ids).size).toBe(GOOD_MAILS)
  expect((await server.request("/readyz")).status).toBe(200)
  // They were there all the time: whoever was sent away as too slow has come again.
  expect([received.open(), submitted.open()]).toEqual([SLOW_OF_A_PORT, SLOW_OF_A_PORT])
  const wanted = ["a", "b"].flatMap((name) =>
    Array.from({ length: GOOD_MAILS }, (_, at) => messageId(`submission-${name}-${at}`)),
  )
  const sent = () => wanted.filter((id) => relay.counts().has(id)).length
  while (sent() < wanted.length) await Bun.sleep(20)
})

test("by default 500 connections, 20 of an address, and 60 a minute of one that delivers", async () => {
  // `up` is for one machine's own programs, so the limits are those of `serve`.
  const smtp = { inbound: await freePort(), submission: await freePort() }
  await using server = await startServe({
    env: {
      BELFRY_SMTP_INBOUND_LISTEN: `127.0.0.1:${smtp.inbound}`,
      BELFRY_SMTP_SUBMISSION_LISTEN: `127.0.0.1:${smtp.submission}`,
    },
  })
  expect((await server.request("/readyz")).status).toBe(200)
  const ports = ["inbound", "submission"] as const
  for (const [at, kind] of ports.entries()) {
    const port = smtp[kind]
    using all = await slowClients({ kind, port, count: 500, from: spread(30 + at, 20) })
    expect(all.open()).toBe(500)
    using late = SmtpDialogue.connect(port, { local: "127.40.0.1" })
    expect(await late.end()).toStartWith("421 4.3.2 service_unavailable: ")
  }
  for (const [at, kind] of ports.entries()) {
    const port = smtp[kind]
    const local = `127.${50 + at}.0.1`
    {
      using twenty = await slowClients({ kind, port, count: 20, from: () => local })
      expect(twenty.open()).toBe(20)
      using more = SmtpDialogue.connect(port, { local })
      expect(await more.end()).toStartWith("421 4.7.0 rate_limit_exceeded: ")
      using other = await SmtpDialogue.open(port, { local: `127.${50 + at}.0.2` })
      expect(await other.say("NOOP")).toStartWith("250 ")
    }
    const greetings: string[] = []
    while (greetings.length < 70) {
      using one = SmtpDialogue.connect(port, { local: `127.${50 + at}.0.3` })
      greetings.push((await one.reply()).text.slice(0, 9))
      one.socket.destroy()
    }
    const served = greetings.filter((text) => text.startsWith("220 ")).length
    expect([kind, served]).toEqual([kind, kind === "inbound" ? 60 : 70])
  }
})
