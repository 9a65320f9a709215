import { Database } from "bun:sqlite"
import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { type CountingRelay, countingRelay } from "../fakes/counting-relay"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { SmtpDialogue } from "../harness/smtp-dialogue"
import { countOf, drained, get, type Mail, until } from "../scenarios/mails"
import { relaySettings } from "../scenarios/serve"
import {
  begin,
  idOf,
  type MailPort,
  mailSettings,
  messageId,
  offer,
  openClient,
  rawMail,
  receivedMails,
  toldMails,
} from "./mail-clients"
import { fileLimit, liftFileLimit, smallDisk } from "./small-disk"

const PORTS: MailPort[] = ["submission", "inbound"]
const CLIENTS_OF_A_PORT = 6
const LOAD_MS = { least: 20, most: 500 }
const RETRIED_A_ROUND = 5
const MB = 1024 * 1024
/** Larger mails stand in a file beside the database. */
const SIZES = [200, 200, 200, 60_000]

/** What the clients of a server that is killed again and again know. */
interface Ledger {
  /** By key: the id that a 250 told. */
  acknowledged: Map<string, string>
  /** Keys of mails whose end, or more, may have reached the server without a reply. */
  unanswered: Set<string>
  /** By key: how often the mail was offered. */
  offered: Map<string, number>
}

type Ledgers = Record<MailPort, Ledger>

const newLedger = (): Ledger => ({
  acknowledged: new Map(),
  unanswered: new Set(),
  offered: new Map(),
})

let mails = 0
const newKey = () => `mail-${mails++}`
const sizeOf = (key: string) => SIZES[Number(key.slice(5)) % SIZES.length] ?? 0

/** One mail, entered in the ledger before and after. */
async function offerOnce(it: SmtpDialogue, port: MailPort, key: string, ledger: Ledger) {
  ledger.unanswered.add(key)
  ledger.offered.set(key, (ledger.offered.get(key) ?? 0) + 1)
  const id = idOf(await offer(it, port, rawMail(port, key, sizeOf(key))))
  ledger.unanswered.delete(key)
  const known = ledger.acknowledged.get(key)
  if (port === "submission" && known !== undefined) expect(id).toBe(known)
  ledger.acknowledged.set(key, id)
}

async function loadUntilKilled(server: Belfry, ledgers: Ledgers) {
  let is_alive = true
  const dead = server.exited.then(() => {
    is_alive = false
  })
  let served = 0
  const client = async (port: MailPort) => {
    let it: SmtpDialogue | undefined
    for (let mails_of_client = 0; is_alive; mails_of_client++) {
      try {
        it ??= await openClient(server, port)
        await offerOnce(it, port, newKey(), ledgers[port])
        if (mails_of_client === 0) served++
      } catch (error) {
        if (is_alive) await Promise.race([dead, Bun.sleep(1000)])
        if (is_alive) throw error // it was not the kill
      }
    }
    it?.[Symbol.dispose]()
  }
  const all = PORTS.flatMap((port) => Array<MailPort>(CLIENTS_OF_A_PORT).fill(port))
  const load = Promise.all(all.map(client))
  await until("every client had an answer", () => served === all.length)
  await Bun.sleep(LOAD_MS.least + Math.random() * (LOAD_MS.most - LOAD_MS.least))
  server.kill("SIGKILL")
  await server.exited
  await load
}

/** A mail without an answer is offered again; and so are some with one, to hear the same id. */
async function offerAgain(server: Belfry, ledgers: Ledgers) {
  for (const port of PORTS) {
    const ledger = ledgers[port]
    using it = await openClient(server, port)
    const answered = [...ledger.acknowledged.keys()].slice(-RETRIED_A_ROUND)
    const again = port === "submission" ? answered : []
    for (const key of [...ledger.unanswered, ...again]) await offerOnce(it, port, key, ledger)
  }
}

async function survive(kills: number, env: Record<string, string>, check: (home: string) => void) {
  const home = makeHome()
  const ledgers: Ledgers = { submission: newLedger(), inbound: newLedger() }
  using relay = countingRelay()
  const options = { home, env: relaySettings(relay.port, { ...mailSettings, ...env }) }
  try {
    for (relay.round = 1; relay.round <= kills; relay.round++) {
      await using server = await startBelfry(options)
      await offerAgain(server, ledgers)
      await loadUntilKilled(server, ledgers)
      check(home)
    }
    await using last = await startBelfry(options)
    await offerAgain(last, ledgers)
    await drained(last)
    await validateSubmitted(last, ledgers.submission, relay)
    await validateReceived(last, ledgers.inbound)
    expect(await last.stop()).toBe(0)
    check(home)
    const [submitted, received] = PORTS.map((port) => ledgers[port].acknowledged.size)
    console.log(`${kills} kills: ${submitted} submitted and ${received} received mails, 0 lost`)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

async function validateSubmitted(server: Belfry, { acknowledged }: Ledger, relay: CountingRelay) {
  expect(acknowledged.size).toBeGreaterThanOrEqual((sizes.mail_kills * CLIENTS_OF_A_PORT) / 2)
  expect(await countOf(server, "sent")).toBe(acknowledged.size) // nothing lost, nothing twice
  expect(await countOf(server)).toBe(acknowledged.size)
  const counts = relay.counts()
  expect([...counts.keys()].sort()).toEqual([...acknowledged.keys()].map(messageId).sort())
  const broken = relay.receipts.filter(({ message_id, raw }) => {
    const key = message_id.slice(1, message_id.indexOf("@"))
    return !raw.endsWith(`\r\n\r\n${rawMail("submission", key, sizeOf(key)).split("\r\n\r\n")[1]}`)
  })
  expect(broken).toEqual([])
  for (const [key, id] of [...acknowledged].slice(0, 20)) {
    const mail = await get<Mail>(server, `/v1/emails/${id}`)
    expect(mail.rfc_message_id).toBe(messageId(key))
  }
}

/** Mail to the instance itself belongs to a project, and is listed, once it is read. */
const allRead = (server: Belfry, ids: string[]) =>
  until(`${ids.length} received mails are read`, async () => {
    const mails = await receivedMails(server)
    const read = new Set(mails.map(({ id, status }) => status === "processed" && id))
    return ids.every((id) => read.has(id)) && mails
  })

async function validateReceived(server: Belfry, { acknowledged, offered }: Ledger) {
  expect(acknowledged.size).toBeGreaterThanOrEqual((sizes.mail_kills * CLIENTS_OF_A_PORT) / 2)
  const all = await allRead(server, [...acknowledged.values()])
  const ids = all.map(({ id }) => id)
  const by_key = Map.groupBy(all, (mail) => mail.rfc_message_id)
  expect([...by_key.keys()].sort()).toEqual([...offered.keys()].map(messageId).sort())
  for (const [key, times] of offered) {
    expect(by_key.get(messageId(key))?.length ?? 0).toBeLessThanOrEqual(times)
  }
  expect((await toldMails(server)).sort()).toEqual(ids.sort()) // each once
  for (const [key, id] of [...acknowledged].slice(-20)) {
    const raw = await (await server.request(`/v1/inbound-emails/${id}/raw`)).text()
    expect(raw.endsWith(rawMail("inbound", key, sizeOf(key)))).toBe(true)
  }
}

function checkIntegrity(path: string) {
  const database = new Database(path)
  try {
    expect(database.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }])
  } finally {
    database.close()
  }
}

const checkHome = (home: string) => checkIntegrity(join(home, "belfry/belfry.db"))

describe("kill -9 under load", () => {
  const kills = sizes.mail_kills

  test(`on SQLite: ${kills} times, and no mail that got its 250 is lost`, async () => {
    await survive(kills, {}, checkHome)
  })

  const has_postgres = !noPostgres()
  if (!has_postgres)
    note("kill -9 of the mail servers on Postgres: start the tests by `bun run test`")

  test.skipIf(!has_postgres || !sizes.on_postgres)(
    "on Postgres: no mail that got its 250 is lost",
    async () => {
      await using database = await freshDatabase()
      const env = { DATABASE_URL: database.url, BELFRY_DELIVERY_LEASE: "5s" }
      await survive(Math.ceil(kills / 2), env, () => {})
    },
  )
})

/** Where a mail may be when the server dies. */
const MOMENTS: Record<string, (it: SmtpDialogue, port: MailPort, raw: string) => Promise<unknown>> =
  {
    "before DATA": async () => {},
    "in the middle of DATA": async (it, port, raw) => {
      await begin(it, port)
      it.write(raw.slice(0, raw.length / 2))
    },
    "before the dot": async (it, port, raw) => {
      await begin(it, port)
      it.write(raw)
    },
    "right after the dot": async (it, port, raw) => {
      await begin(it, port)
      it.write(`${raw}.\r\n`)
    },
    "right after the 250": (it, port, raw) => offer(it, port, raw),
  }

test("kill -9 at each moment of a mail: a client that comes again is answered for one mail", async () => {
  const home = makeHome()
  using relay = countingRelay()
  const options = { home, env: relaySettings(relay.port, mailSettings) }
  const told = new Map<string, string>()
  try {
    for (const [at, [moment, go]] of Object.entries(MOMENTS).entries()) {
      await using server = await startBelfry(options)
      relay.round = at
      for (const port of PORTS) {
        using it = await openClient(server, port)
        const key = `moment-${at}`
        await go(it, port, rawMail(port, key, 40_000))
        if (moment === "right after the 250")
          told.set(port, idOf(it.said.trim().split("\r\n").at(-1) ?? ""))
        if (port === "inbound") server.kill("SIGKILL")
      }
      expect(await server.exited).not.toBe(0)
    }
    relay.round++
    await using last = await startBelfry(options)
    const ids: string[] = []
    for (const at of Object.keys(Object.values(MOMENTS))) {
      using it = await openClient(last, "submission")
      ids.push(idOf(await offer(it, "submission", rawMail("submission", `moment-${at}`, 40_000))))
    }
    expect(ids.at(-1)).toBe(told.get("submission"))
    await drained(last)
    expect(await countOf(last)).toBe(ids.length)
    expect([...relay.counts().keys()].sort()).toEqual(ids.map((_, at) => messageId(`moment-${at}`)))
    // What the relay had when the server died comes there again. No server sends anything twice.
    const sent = relay.receipts.map(({ round, message_id }) => `${message_id} in round ${round}`)
    expect(sent).toEqual([...new Set(sent)])
    const received = await allRead(last, [told.get("inbound") ?? ""])
    const whole = ["moment-3", "moment-4"].map(messageId)
    expect(received.filter((one) => !whole.includes(one.rfc_message_id))).toEqual([])
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

/** Offers mails until one is refused: the ids of those before, and the refusal. */
async function untilRefused(it: SmtpDialogue, port: MailPort, size: number) {
  const acknowledged = new Map<string, string>()
  for (;;) {
    const key = newKey()
    const reply = await offer(it, port, rawMail(port, key, size))
    if (!reply.startsWith("2.0.0")) return { acknowledged, refusal: reply, key }
    acknowledged.set(key, idOf(reply))
  }
}

/** Comes again now and then, as a client with a queue does. */
const takesAgain = (it: SmtpDialogue, port: MailPort, key: string, size: number) =>
  until("it takes mail again", async () => {
    const reply = await offer(it, port, rawMail(port, key, size))
    if (reply.startsWith("2.0.0")) return idOf(reply)
    expect(reply).toMatch(REFUSED)
    return Bun.sleep(500).then(() => undefined)
  })

/** What was acknowledged is there: sent once, or received. */
async function expectKept(
  server: Belfry,
  port: MailPort,
  all: Map<string, string>,
  relay: CountingRelay,
) {
  if (port === "submission") {
    await drained(server)
    const counts = relay.counts()
    expect([...all.keys()].map((key) => counts.get(messageId(key)))).toEqual([...all].map(() => 1))
    return
  }
  await allRead(server, [...all.values()])
}

const trial = smallDisk(1)
trial?.[Symbol.dispose]()
const cannot_mount = trial === undefined
if (cannot_mount) note("mail servers on a full disk, on a tmpfs: mounting is refused")

const REFUSED = /^(?:452 )?4\.3\.1 service_unavailable: .* \(req_[0-9a-f]{32}\)$/

describe.skipIf(cannot_mount)("a small disk", () => {
  test.each(PORTS.slice(0, sizes.variants))(
    "full to the last byte is 452 4.3.1 on %s, and it goes on when there is room",
    async (port) => {
      using disk = smallDisk(48)
      using relay = countingRelay()
      if (!disk) throw new Error("mounting worked a moment ago")
      const env = relaySettings(relay.port, { ...mailSettings, BELFRY_STORAGE_BALLAST_MB: "4" })
      await using server = await startBelfry({ env, args: ["--data-dir", disk.folder] })
      using it = await openClient(server, port)
      const all = new Map<string, string>()
      for (let cycle = 0; cycle < 2; cycle++) {
        disk.fill(MB)
        const { acknowledged, refusal, key } = await untilRefused(it, port, 60_000)
        for (const [name, id] of acknowledged) all.set(name, id)
        expect(refusal).toMatch(REFUSED)
        disk.free()
        all.set(key, await takesAgain(it, port, key, 60_000))
      }
      await expectKept(server, port, all, relay)
      expect(await server.stop()).toBe(0)
      checkIntegrity(join(disk.folder, "belfry.db"))
    },
  )

  test("above the floor, mail of strangers is refused first, and sends go on", async () => {
    using disk = smallDisk(80)
    using relay = countingRelay()
    if (!disk) throw new Error("mounting worked a moment ago")
    const floor = { BELFRY_STORAGE_MIN_FREE_MB: "16", BELFRY_STORAGE_BALLAST_MB: "0" }
    const env = relaySettings(relay.port, { ...mailSettings, ...floor })
    await using server = await startBelfry({ env, args: ["--data-dir", disk.folder] })
    using delivering = await openClient(server, "inbound")
    using submitting = await openClient(server, "submission")
    const first = newKey()
    const all = new Map([
      [first, idOf(await offer(delivering, "inbound", rawMail("inbound", first, 200)))],
    ])
    disk.fill(24 * MB)
    const refused = await untilRefused(delivering, "inbound", 200)
    for (const [key, id] of refused.acknowledged) all.set(key, id)
    expect(refused.refusal).toMatch(REFUSED)
    const key = newKey()
    const id = idOf(await offer(submitting, "submission", rawMail("submission", key, 200)))
    expect((await server.request("/readyz")).status).toBe(200)
    disk.free()
    all.set(refused.key, await takesAgain(delivering, "inbound", refused.key, 200))
    await expectKept(server, "inbound", all, relay)
    await expectKept(server, "submission", new Map([[key, id]]), relay)
  })

  test("below the floor both servers refuse at MAIL, before a byte is sent", async () => {
    using disk = smallDisk(64)
    using relay = countingRelay()
    if (!disk) throw new Error("mounting worked a moment ago")
    const floor = { BELFRY_STORAGE_MIN_FREE_MB: "16", BELFRY_STORAGE_BALLAST_MB: "4" }
    const env = relaySettings(relay.port, { ...mailSettings, ...floor })
    await using server = await startBelfry({ env, args: ["--data-dir", disk.folder] })
    for (const port of PORTS) {
      using it = await openClient(server, port)
      disk.fill(8 * MB)
      const { acknowledged, refusal, key } = await untilRefused(it, port, 200)
      expect(refusal).toMatch(REFUSED)
      expect(await it.say("MAIL FROM:<me@example.test>")).toMatch(REFUSED)
      disk.free()
      acknowledged.set(key, await takesAgain(it, port, key, 200))
      await expectKept(server, port, acknowledged, relay)
    }
  })
})

const cannot_limit = Bun.which("prlimit") === null
if (cannot_limit) note("mail servers under a file-size limit: needs prlimit (util-linux)")

test.skipIf(cannot_limit || !(sizes.file_limits || cannot_mount))(
  "where no file may grow both servers answer 452, and go on later",
  async () => {
    const home = makeHome()
    using relay = countingRelay()
    try {
      const env = relaySettings(relay.port, mailSettings)
      await using server = await startBelfry({ home, env, wrap: fileLimit(12) })
      using submitting = await openClient(server, "submission")
      const first = await untilRefused(submitting, "submission", 30_000)
      expect(first.refusal).toMatch(REFUSED)
      // Not earlier: a session that says nothing for a minute ends, and the first may take as long.
      using delivering = await openClient(server, "inbound")
      const second = await untilRefused(delivering, "inbound", 30_000)
      expect(second.refusal).toMatch(REFUSED)
      liftFileLimit(server.pid)
      first.acknowledged.set(
        first.key,
        await takesAgain(submitting, "submission", first.key, 30_000),
      )
      second.acknowledged.set(
        second.key,
        await takesAgain(delivering, "inbound", second.key, 30_000),
      )
      await expectKept(server, "submission", first.acknowledged, relay)
      await expectKept(server, "inbound", second.acknowledged, relay)
      expect(await server.stop()).toBe(0)
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  },
)

test("SIGTERM: idle and new clients hear 421, a mail on its way gets its 250 and is kept", async () => {
  const home = makeHome()
  using relay = countingRelay()
  const options = { home, env: relaySettings(relay.port, mailSettings) }
  try {
    const kept = new Map<MailPort, string>()
    {
      await using server = await startBelfry(options)
      const idle = await Promise.all(PORTS.map((port) => openClient(server, port)))
      const sending = await Promise.all(PORTS.map((port) => openClient(server, port)))
      for (const [at, port] of PORTS.entries()) {
        expect(await begin(sending[at] as SmtpDialogue, port)).toStartWith("354")
        sending[at]?.write(rawMail(port, `drain-${port}`, 50_000).slice(0, 30_000))
      }
      server.kill("SIGTERM")
      for (const one of idle) {
        expect((await one.reply()).text).toMatch(/^421 4\.3\.2 service_unavailable: /)
        await one.end()
      }
      for (const port of PORTS) {
        using late = SmtpDialogue.connect(server.smtp[port] ?? 0)
        expect(await late.end()).toMatch(/^(?:421 4\.3\.2 service_unavailable: .*\r\n)?$/)
      }
      for (const [at, port] of PORTS.entries()) {
        const it = sending[at] as SmtpDialogue
        it.write(`${rawMail(port, `drain-${port}`, 50_000).slice(30_000)}.\r\n`)
        kept.set(port, idOf((await it.reply()).lines.join(" ")))
        expect((await it.reply()).text).toMatch(/^421 4\.3\.2 /)
        await it.end()
      }
      expect(await server.exited).toBe(0)
    }
    await using next = await startBelfry(options)
    await drained(next)
    expect([...relay.counts()]).toEqual([[messageId("drain-submission"), 1]])
    expect((await get<Mail>(next, `/v1/emails/${kept.get("submission")}`)).status).toBe("sent")
    expect(await allRead(next, [kept.get("inbound") ?? ""])).toHaveLength(1)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test("SIGTERM under load: each mail is either acknowledged and kept, or told 421 and not there", async () => {
  const home = makeHome()
  using relay = countingRelay()
  const options = { home, env: relaySettings(relay.port, mailSettings) }
  const acknowledged: Record<MailPort, string[]> = { submission: [], inbound: [] }
  try {
    {
      await using server = await startBelfry(options)
      let served = 0
      const client = async (port: MailPort) => {
        using it = await openClient(server, port)
        for (;;) {
          const key = newKey()
          const reply = await offer(it, port, rawMail(port, key, sizeOf(key))).catch(() => it.said)
          if (!reply.startsWith("2.0.0")) break
          acknowledged[port].push(idOf(reply))
          served++
        }
        expect(await it.end()).toMatch(/\r\n421 4\.3\.2 service_unavailable: .*\r\n$/)
      }
      const all = PORTS.flatMap((port) => Array<MailPort>(CLIENTS_OF_A_PORT).fill(port))
      const clients = Promise.all(all.map(client))
      await until("mails were taken", () => served > 5 * all.length)
      server.kill("SIGTERM")
      await clients
      expect(await server.exited).toBe(0)
    }
    await using next = await startBelfry(options)
    await drained(next)
    expect(await countOf(next)).toBe(acknowledged.submission.length)
    expect([...relay.counts().values()]).toEqual(acknowledged.submission.map(() => 1))
    const received = await allRead(next, acknowledged.inbound)
    expect(received.map(({ id }) => id).sort()).toEqual(acknowledged.inbound.sort())
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
