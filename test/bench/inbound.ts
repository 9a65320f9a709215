import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { noKnot, startKnot } from "../harness/knot"
import { freePort } from "../harness/ports"
import { bareInserts } from "./batch"
import { atLeast, type Bench, ratioOf, requireEqual, series } from "./bench"
import { type Scratch, scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, type Serving, serve } from "./serving"
import { addSigningDomain } from "./signing-domain"
import { openSessions, processorMs } from "./smtp-sessions"
import { headerOf } from "./submission"
import { emptySubmission, listens, type MailTaker } from "./submission-peers"
import { arrivals, bareRuns, startReceiver } from "./webhooks"

/** As released at the time of writing; its own newest dependencies may not resolve everywhere. */
const MAILDEV = "maildev@3.0.0"
const NOT_NEWER = "--before=2026-03-01"

const SESSIONS = 20
const BYTES = 4096
const DOMAIN = "bench.test"
const FROM = "ann@friends.test"
const POLL_MS = 20
const BARE_A_SECOND = 2000
/** Of the body of a webhook about such a mail. */
const HOOK_CHARACTERS = 9000
const ARRIVES_MS = 60_000

export const inbound: Bench = {
  name: "inbound",
  title: "mail of 4 KB by SMTP → judged, parsed, stored → webhook answered, 20 sessions that stay",

  async run({ rounds, seconds }) {
    if (noKnot) throw new Error("needs knot (apt-get install knot)")
    using maildev = installMaildev()
    await using knot = await startKnot({
      "friends.test": ['@ TXT "v=spf1 ip4:127.0.0.1 -all"', '_dmarc TXT "v=DMARC1; p=reject"'],
    })
    const ours = series("ours: until the webhook of the last mail was answered", "/s")
    const accepted = series("ours: accepted meanwhile", "/s")
    const p99 = series("ours: p99 of accepting", "ms")
    const peer = series("peer: maildev, accept alone, in memory", "/s")
    const empty = series("limit: smtp-server with an empty handler", "/s")
    const empty_tls = series("limit: the same with STARTTLS", "/s")
    const rows = series(`limit: the rows with bare bun:sqlite, ${SESSIONS} a transaction`, "/s")
    const hooks = series("limit: bare `fetch` with an HMAC, the body as long", "/s")
    const ours_cpu = series("ours: processor time of a mail", "ms")
    const peer_cpu = series("peer: processor time of a mail", "ms")
    for (let round = 0; round < rounds; round++) {
      using template = scratchFolder()
      const own = await oursTakes(template.path, knot.address, seconds)
      ours.values.push(own.per_second)
      accepted.values.push(own.accepted_per_second)
      p99.values.push(own.p99_ms)
      ours_cpu.values.push(own.processor_ms)
      const bare = await maildevTakes(maildev.path, seconds)
      peer.values.push(bare.per_second)
      peer_cpu.values.push(bare.processor_ms)
      empty.values.push(await emptyTakes(seconds, false))
      empty_tls.values.push(await emptyTakes(seconds, true))
      const written = { kind: "inbound_emails", together: SESSIONS } as const
      rows.values.push(await bareInserts(template.path, BARE_A_SECOND * seconds, written))
      hooks.values.push(await bareHooks(BARE_A_SECOND * seconds))
    }
    return {
      series: [ours, accepted, p99, peer, empty, empty_tls, rows, hooks, ours_cpu, peer_cpu],
      verdicts: [atLeast("ours to maildev's accept", ratioOf(ours, peer), 1.5)],
      notes: [
        "One load generator for both, without pipelining and without TLS. A run of the same length comes before the one that counts. SPF and DMARC ask a name server on this machine, and both pass; the mails have no signature.",
        "The limits are what one process does when it does nothing else: the dialogue of SMTP, the rows of a mail written once (its own, raw message, bodies, event, delivery), and the POST.",
        "As many different webhooks came, each with a signature, as there were 250s. The server was killed (`kill -9`) before its rows were counted: one processed mail for each.",
      ],
    }
  },
}

const load = (port: number) => ({
  ...{ port, sessions: SESSIONS, bytes: BYTES, tls: false, pipelined: false, password: null },
  ...{ from: FROM, to: `support@${DOMAIN}`, header: headerOf(FROM, `support@${DOMAIN}`) },
})

/** In a new folder, which then has a database with such mails. */
async function oursTakes(folder: string, dns: string, seconds: number) {
  await using receiver = await startReceiver()
  const key = await initialise(folder)
  addSigningDomain(folder, DOMAIN, true)
  const port = await freePort()
  await using server = await serve(folder, key, {
    BELFRY_SMTP_INBOUND_LISTEN: `127.0.0.1:${port}`,
    BELFRY_INBOUND_MB_PER_HOUR: "1000000", // all of it comes from one address
    BELFRY_DNS_SERVERS: dns,
    BELFRY_WEBHOOKS_REQUIRE_HTTPS: "false",
    BELFRY_WEBHOOKS_ALLOW_PRIVATE: "127.0.0.0/8",
  })
  await makeWebhook(server, `http://127.0.0.1:${receiver.port}/hooks`)
  await using sessions = await openSessions(load(port))
  const warm = await sessions.offer(seconds)
  await arrived(receiver, warm.taken)
  const before = processorMs(server.pid)
  const begun = performance.now()
  const told = await sessions.offer(seconds)
  await arrived(receiver, told.taken)
  const taken_s = (performance.now() - begun) / 1000
  const processor_ms = (processorMs(server.pid) - before) / told.taken
  await sessions[Symbol.asyncDispose]() // before the server, whose end would be an error to them
  await server.kill()
  using database = databaseOf(folder)
  const processed = "inbound_emails WHERE status = 'processed'"
  requireEqual("processed mails", warm.taken + told.taken, countRows(database, processed))
  return {
    per_second: told.taken / taken_s,
    accepted_per_second: told.taken / told.seconds,
    p99_ms: told.p99_ms,
    processor_ms,
  }
}

async function emptyTakes(seconds: number, tls: boolean) {
  using scratch = scratchFolder()
  await using server = await emptySubmission(scratch.path, "")
  await using sessions = await openSessions({ ...load(server.port), tls })
  await sessions.offer(seconds / 2)
  const told = await sessions.offer(seconds)
  return told.taken / told.seconds
}

async function bareHooks(wanted: number) {
  await using receiver = await startReceiver()
  return await bareRuns(receiver, wanted, HOOK_CHARACTERS)
}

async function makeWebhook({ url, headers }: Serving, target: string) {
  const body = JSON.stringify({ url: target, events: ["email.received"] })
  const json = { ...headers, "Content-Type": "application/json" }
  const { status } = await fetch(`${url}/v1/webhooks`, { method: "POST", headers: json, body })
  requireEqual("the status of POST /v1/webhooks", 201, status)
}

/** Resolves when so many different webhooks came since the last time. */
async function arrived(receiver: { port: number }, wanted: number) {
  const keys = new Set<string>()
  const deadline = performance.now() + ARRIVES_MS
  while (keys.size < wanted) {
    for (const key of (await arrivals(receiver)).keys()) keys.add(key)
    if (performance.now() > deadline) throw new Error(`${keys.size} of ${wanted} webhooks came`)
    if (keys.size < wanted) await Bun.sleep(POLL_MS)
  }
  requireEqual("different webhooks", wanted, keys.size)
}

function installMaildev(): Scratch {
  const scratch = scratchFolder()
  writeFileSync(join(scratch.path, "package.json"), '{ "private": true }\n')
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const install = (...more: string[]) =>
    Bun.spawnSync({
      cmd: ["npm", "install", ...flags, ...more],
      cwd: scratch.path,
      stdio: ["ignore", "ignore", "pipe"],
    })
  const first = install(MAILDEV)
  const made = first.exitCode === 0 ? first : install("maildev@2", NOT_NEWER)
  if (made.exitCode === 0) return scratch
  scratch[Symbol.dispose]()
  throw new Error(`maildev cannot be installed: ${made.stderr.toString()}`)
}

async function startMaildev(installed: string): Promise<MailTaker> {
  const port = await freePort()
  const child = Bun.spawn({
    cmd: ["node", join(installed, "node_modules/.bin/maildev"), "--disable-web", "--silent"].concat(
      ["--smtp", String(port), "--ip", "127.0.0.1"],
    ),
    cwd: installed,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  })
  const end = async () => {
    child.kill()
    await child.exited
  }
  await listens(port).catch(async (error) => {
    await end()
    throw error
  })
  return { port, pid: child.pid, [Symbol.asyncDispose]: end }
}

async function maildevTakes(installed: string, seconds: number) {
  await using server = await startMaildev(installed)
  await using sessions = await openSessions(load(server.port))
  await sessions.offer(seconds)
  const before = processorMs(server.pid ?? 0)
  const told = await sessions.offer(seconds)
  const processor_ms = (processorMs(server.pid ?? 0) - before) / told.taken
  return { per_second: told.taken / told.seconds, processor_ms }
}
