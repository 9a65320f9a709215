/**
 * Both mail servers in this process, with so many made-up dialogues (`dialogues`) or broken mails
 * (`mails`). Prints one line of JSON: what was wrong, what hung, and how much memory stayed.
 */

import type { Resolver } from "../../src/core/dns"
import { resolver } from "../../src/core/dns"
import { log } from "../../src/core/log"
import { canonical, dotStuffed } from "../../src/lib/mail-text"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, inboundServer } from "../harness/inbound-server"
import fc from "../harness/properties"
import { testService } from "../harness/service"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { openSubmission } from "../harness/submission"
import { broken } from "./broken-mails"
import { type Dialogue, dialogue } from "./dialogues"

const SEED = 25
const MEGABYTE = 1024 * 1024
const AT_A_TIME = 50
/** After so many the processed mail is looked at, and the memory may be counted. */
const BATCH = 250

const [kind = "dialogues", given = "1000"] = process.argv.slice(2)
const total = Number(given)

const wrong: string[] = []
const replies: Record<string, number> = {}
const faults: string[] = []
log.info = () => {}
log.warn = () => {}
log.error = (message, fields) => void faults.push(`${message} ${Bun.inspect(fields).slice(0, 600)}`)
process.on("uncaughtException", (error) => faults.push(`uncaught: ${error.stack}`))
process.on("unhandledRejection", (error) => faults.push(`unhandled: ${error}`))

await using service = await testService()
const nothing = async () => []
const dns: Resolver = {
  ...resolver({ servers: ["127.0.0.1:9"] }),
  ...{ txt: nothing, a: nothing, aaaa: nothing, mx: nothing, cname: nothing, ptr: nothing },
}
const verdicts = { workers: service.parts.workers, dns, host: HOST }
await using inbound = await inboundServer(service, { verdicts })
await using submission = await openSubmission(service)
const project = await service.project()
await addReceivingDomain(service.store, project, "in.example")

let clients = 0
const nextAddress = () => `127.11.${(clients >> 8) & 255}.${clients++ & 255}`

async function open({ port, start }: Pick<Dialogue, "port" | "start">): Promise<SmtpDialogue> {
  const local = nextAddress()
  const it = await SmtpDialogue.open(port === "inbound" ? inbound.server.port : submission.port, {
    local,
  })
  if (start === "plain") return it
  await it.say("EHLO me.test")
  await it.starttls()
  if (start === "login" && port === "submission") {
    await it.talk("EHLO me.test", plainLogin("svc", project.key))
  }
  return it
}

/** Ends whatever the client is in the middle of, and the session. */
const FAREWELL = `\r\n.\r\n${"QUIT\r\n".repeat(5)}`

async function talk(one: Dialogue) {
  using it = await open(one)
  const said = it.said.length
  let from = 0
  for (let turn = 0; from < one.bytes.length && !it.closed; turn++) {
    const to = from + (one.cuts[turn % one.cuts.length] ?? 1)
    it.write(one.bytes.subarray(from, to))
    from = to
    if (turn % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  if (one.leaves === "goes") return
  it.write(FAREWELL)
  const nudge = setInterval(() => breakHandshake(it), 100)
  await it.end().finally(() => clearInterval(nudge))
  judge(it.said.slice(said), one.bytes)
}

/** The server waits for a handshake, and what came with STARTTLS was dropped: this is none either. */
function breakHandshake(it: SmtpDialogue) {
  if (it.said.endsWith("220 2.0.0 Ready to start TLS\r\n") && !it.closed)
    it.write(FAREWELL.repeat(20))
}

/** Each line of the server is a reply, and none says that something of its own went wrong. */
function judge(said: string, bytes: Uint8Array) {
  for (const line of said.split("\r\n").slice(0, -1)) {
    const [, code] = /^(\d{3})[ -]/.exec(line) ?? []
    if (code === undefined || (code === "451" && line.includes("internal_error"))) {
      wrong.push(`${line} after ${Bun.inspect(Buffer.from(bytes).toString("latin1"))}`)
    } else replies[code] = (replies[code] ?? 0) + 1
  }
}

let mails = 0
async function send(raw: Buffer) {
  const number = mails++
  // A broken line end is refused at once; so that others are read, most get their line ends right.
  const text =
    number % 10 === 0
      ? raw
      : Buffer.from(canonical(raw.toString("latin1")).replaceAll("\0", ""), "latin1")
  const port = number % 4 === 0 ? "submission" : "inbound"
  using it = await open({ port, start: port === "submission" ? "login" : "plain" })
  const said = it.said.length
  const to = port === "submission" ? "ann@example.test" : "any@in.example"
  await it.talk("EHLO me.test", "MAIL FROM:<bell@example.test>", `RCPT TO:<${to}>`)
  it.write("DATA\r\n")
  if (!(await it.reply()).text.startsWith("354")) return judge(it.said.slice(said), text)
  it.write(dotStuffed(text))
  it.write("QUIT\r\n")
  await it.end()
  judge(it.said.slice(said), text)
}

const rss = () => {
  Bun.gc(true)
  return process.memoryUsage().rss
}

const work: (() => Promise<void>)[] =
  kind === "mails"
    ? fc.sample(broken, { seed: SEED, numRuns: total }).map((raw) => () => send(raw))
    : fc.sample(dialogue, { seed: SEED, numRuns: total }).map((one) => () => talk(one))

let done = 0
let settled = 0
while (work.length > 0) {
  const batch = work.splice(0, BATCH)
  const client = async () => {
    for (let next = batch.shift(); next; next = batch.shift()) {
      await next().catch((error: Error) => wrong.push(error.message.slice(0, 1000)))
      done++
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, client))
  await inbound.work()
  if (settled === 0 && done >= total / 2) settled = rss()
}
const ends_at = Date.now() + 20_000
while (inbound.server.counts().open_connections > 0 && Date.now() < ends_at) await Bun.sleep(20)
const { open_connections, buffered_bytes } = inbound.server.counts()
const kept = Math.round((rss() - settled) / MEGABYTE)
const summary = { done, replies, wrong: wrong.slice(0, 5), faults: faults.slice(0, 5) }
console.log(JSON.stringify({ ...summary, open_connections, buffered_bytes, kept }))
process.exit(0)
