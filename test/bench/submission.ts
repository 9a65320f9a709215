import { readdirSync } from "node:fs"
import { join } from "node:path"
import { freePort } from "../harness/ports"
import { noPostfix } from "../harness/scratch-postfix"
import { atLeast, type Bench, ratioOf, requireEqual, series } from "./bench"
import { heldRelay } from "./held-relay"
import { scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, serve } from "./serving"
import { openSessions, processorMs } from "./smtp-sessions"
import {
  emptySubmission,
  holdingPostfix,
  installHaraka,
  type MailTaker,
  PASSWORD,
  startHaraka,
} from "./submission-peers"

const SESSIONS = 20
const BYTES = 1024
const FROM = "shop@bench.test"

export const submission: Bench = {
  name: "submission",
  title:
    "mail of 1 KB by SMTP with STARTTLS and AUTH, 20 sessions that stay, durable before the 250",

  async run({ rounds, seconds }) {
    using haraka_package = installHaraka()
    const absent = noPostfix()
    const empty = series("limit: smtp-server with an empty handler, nothing stored", "/s")
    const ours = series("ours, relay held", "/s")
    const p99 = series("ours: p99 of a mail", "ms")
    const haraka = series("peer: Haraka, a file and an fsync for each mail", "/s")
    const postfix = series("beside it: Postfix, TLS without AUTH, mail put on hold", "/s")
    const empty_cpu = series("limit: processor time of a mail", "ms")
    const ours_cpu = series("ours: processor time of a mail", "ms")
    const haraka_cpu = series("peer: Haraka: processor time of a mail", "ms")
    for (let round = 0; round < rounds; round++) {
      const bare = await emptyTakes(seconds)
      empty.values.push(bare.per_second)
      empty_cpu.values.push(bare.processor_ms)
      const own = await oursTakes(seconds)
      ours.values.push(own.per_second)
      ours_cpu.values.push(own.processor_ms)
      p99.values.push(own.p99_ms)
      const peer = await harakaTakes(haraka_package.path, seconds)
      haraka.values.push(peer.per_second)
      haraka_cpu.values.push(peer.processor_ms)
      if (!absent) postfix.values.push((await postfixTakes(seconds)).per_second)
    }
    return {
      series: [empty, ours, p99, haraka, postfix, empty_cpu, ours_cpu, haraka_cpu],
      verdicts: [
        atLeast("ours to the empty handler", ratioOf(ours, empty), 0.6),
        atLeast("ours to Haraka with fsync", ratioOf(ours, haraka), 2),
      ],
      notes: [
        "One load generator for all, without pipelining, as most libraries send. Sessions log in before the clock starts, and a run of the same length comes before the one that counts. Each mail has a Message-ID of its own.",
        "Ours was killed (`kill -9`) after its last 250, and its database held a message, a content and an event for each. Haraka's folder held a file for each. Both run one process.",
        ...(absent ? [`Not measured: Postfix (${absent}).`] : []),
      ],
    }
  },
}

interface TakenMail {
  per_second: number
  p99_ms: number
  processor_ms: number
  /** Together with those before the clock started. */
  all: number
}

async function takes(server: MailTaker, password: string | null, seconds: number) {
  const { port, pid } = server
  await using sessions = await openSessions({
    ...{ port, sessions: SESSIONS, bytes: BYTES, tls: true, pipelined: false, password },
    ...{ from: FROM, to: "ann@friends.test", header: headerOf(FROM, "ann@friends.test") },
  })
  const warm = await sessions.offer(seconds)
  const before = pid === undefined ? 0 : processorMs(pid)
  const told = await sessions.offer(seconds)
  const used = pid === undefined ? Number.NaN : processorMs(pid) - before
  const taken: TakenMail = {
    per_second: told.taken / told.seconds,
    p99_ms: told.p99_ms,
    processor_ms: used / told.taken,
    all: warm.taken + told.taken,
  }
  return taken
}

/** What mail programs write, but for the Message-ID. */
export const headerOf = (from: string, to: string): string =>
  [
    `From: Shop <${from}>`,
    `To: ${to}`,
    "Subject: Your order has shipped",
    `Date: ${new Date().toUTCString().replace("GMT", "+0000")}`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: 7bit",
    "",
  ].join("\r\n")

async function emptyTakes(seconds: number): Promise<TakenMail> {
  using scratch = scratchFolder()
  await using server = await emptySubmission(scratch.path)
  return await takes(server, PASSWORD, seconds)
}

async function oursTakes(seconds: number): Promise<TakenMail> {
  using scratch = scratchFolder()
  using relay = heldRelay()
  const port = await freePort()
  const key = await initialise(scratch.path)
  await using server = await serve(scratch.path, key, {
    ...relay.environment,
    BELFRY_SMTP_SUBMISSION_LISTEN: `127.0.0.1:${port}`,
  })
  const taken = await takes({ port, ...server }, key, seconds)
  await server.kill()
  using database = databaseOf(scratch.path)
  for (const table of ["messages", "message_contents", "events WHERE type = 'email.queued'"]) {
    requireEqual(table, taken.all, countRows(database, table))
  }
  return taken
}

async function harakaTakes(installed: string, seconds: number): Promise<TakenMail> {
  using scratch = scratchFolder()
  await using server = await startHaraka(installed, scratch.path)
  const taken = await takes(server, PASSWORD, seconds)
  requireEqual("files of Haraka", taken.all, readdirSync(join(scratch.path, "queue")).length)
  return taken
}

async function postfixTakes(seconds: number): Promise<TakenMail> {
  using scratch = scratchFolder()
  await using server = await holdingPostfix(scratch.path)
  return await takes(server, null, seconds)
}
