import { afterAll, beforeAll, expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openBlobs } from "../../src/core/blobs"
import { resolver } from "../../src/core/dns"
import { isoFrom, millis } from "../../src/core/time"
import { openWorkers, type Workers } from "../../src/core/workers"
import { readSmall } from "../../src/inbound/read-mail"
import { verify } from "../../src/inbound/verdicts"
import type { ReadSmallMail } from "../../src/inbound/verify-task"
import { type NameServer, nameServer, type Say } from "../core/name-server"
import { leftover } from "../harness/leftovers"
import { sizes } from "../harness/sizes"
import { type SampleMail, sampleMails } from "./sample-mails"
import { txtRows } from "./sample-spf"

const HOST = "mx.here.test"
const blobs_dir = leftover(mkdtempSync(join(tmpdir(), "belfry-small-")))

let zone: Record<string, Say> = {}
let server: NameServer
let pool: Workers
/** The names of the tasks that were given to a thread. */
let tasks: string[] = []
let workers: Workers
beforeAll(async () => {
  openBlobs(blobs_dir)
  server = await nameServer((name, kind) => zone[`${kind} ${name}`.toLowerCase()] ?? [])
  pool = openWorkers({ size: 2 })
  workers = {
    ...pool,
    run: (task, input, options) => {
      tasks.push(task)
      return pool.run(task, input, options)
    },
    close: () => pool.close(),
  }
})
afterAll(async () => {
  server.close()
  await pool.close()
})

/** A resolver that has not asked anything yet, for the names of a mail. */
function resolverFor({ zone: given }: Pick<SampleMail, "zone">) {
  zone = Object.fromEntries(Object.entries(given).map(([name, rows]) => [name.toLowerCase(), rows]))
  return resolver({ servers: [server.address], try_ms: 1_000 })
}

type Dns = ReturnType<typeof resolverFor>

function read({ raw, arrival }: SampleMail, dns: Dns, dns_ms = 5_000) {
  const { received_at = isoFrom(millis()), ...sender } = arrival
  const row = { created_at: received_at, session: { ...sender, to: [], tls: null } }
  const tools = { dns, host: HOST, dns_ms }
  return readSmall(row, raw, { workers, tools, blobs_dir, verdicts: null })
}

const words = (found: ReadSmallMail | undefined) => found?.verdicts

test(`the verdicts of ${sizes.verdicts} mails are those of the way step by step`, async () => {
  for (const mail of sampleMails(29, sizes.verdicts)) {
    const together = words(await read(mail, resolverFor(mail)))
    const tools = { workers: pool, dns: resolverFor(mail), host: HOST }
    const { detail, ...alone } = await verify(mail.raw, mail.arrival, tools)
    expect(together, `${mail.name} ${JSON.stringify(detail)}`).toEqual(alone)
  }
})

const SENDER: SampleMail["zone"] = {
  "TXT sender.test": txtRows("v=spf1 include:hosts.sender.test -all"),
  "TXT hosts.sender.test": txtRows("v=spf1 ip4:192.0.2.1 -all"),
  "TXT _dmarc.sender.test": txtRows("v=DMARC1; p=reject"),
}

const mailOf = (text: string): SampleMail => ({
  name: text,
  raw: Buffer.from(`From: ann@sender.test\r\nSubject: ${text}\r\n\r\n${text}\r\n`),
  arrival: { address: "192.0.2.1", helo: "mx.sender.test", mail_from: "ann@sender.test" },
  zone: SENDER,
  traits: [],
})

test("the second mail of a domain is judged in one round, from what DNS said just now", async () => {
  const dns = resolverFor({ zone: SENDER })
  tasks = []
  expect(words(await read(mailOf("one"), dns))).toMatchObject({ spf: "pass", dmarc: "pass" })
  expect(tasks.length).toBeGreaterThan(1)
  const before = server.asked()
  tasks = []
  expect(words(await read(mailOf("two"), dns))).toMatchObject({ spf: "pass", dmarc: "pass" })
  expect(tasks).toEqual(["read-small-mails"])
  expect(server.asked()).toBe(before)
})

test("mails that come at once share tasks, and each gets what it says itself", async () => {
  const dns = resolverFor({ zone: SENDER })
  await read(mailOf("first"), dns)
  tasks = []
  const numbers = Array.from({ length: 40 }, (_, at) => `mail ${at}`)
  const found = await Promise.all(numbers.map((text) => read(mailOf(text), dns)))
  expect(found.map((one) => one?.mail.subject)).toEqual(numbers)
  expect(tasks.length).toBeLessThan(10)
})

test("name servers that never answer are a temperror in time", async () => {
  const mail = mailOf("late")
  const dns = resolverFor({ zone: { "TXT sender.test": "silence" } as never })
  expect(words(await read(mail, dns, 300))).toMatchObject({ spf: "temperror", dmarc: "temperror" })
})

test("a thread that does not answer leaves the mail to the way step by step", async () => {
  const failing: Workers = {
    run: () => Promise.reject(new RangeError("a bug")),
    close: async () => {},
  }
  const { raw, arrival } = mailOf("any")
  const row = { created_at: isoFrom(millis()), session: { ...arrival, to: [], tls: null } }
  const tools = { dns: resolverFor({ zone: SENDER }), host: HOST }
  const read = readSmall(row, raw, { workers: failing, tools, blobs_dir, verdicts: null })
  expect(await read).toBeUndefined()
})
