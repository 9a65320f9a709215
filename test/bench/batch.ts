import { join } from "node:path"
import { atLeast, type Bench, ratioOf, requireEqual, series } from "./bench"
import { type HeldRelay, heldRelay } from "./held-relay"
import { manyMails } from "./mail"
import { scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, serve } from "./serving"
import { type Answers, post } from "./wrk"

const CONNECTIONS = 8
const A_BATCH = 100
const BARE_MESSAGES = { kind: "messages", together: 1000 } as const
const BARE_MESSAGES_A_SECOND = 10_000

export const batch: Bench = {
  name: "batch",
  title: "`POST /v1/emails/batch` of 100, 8 connections",

  async run({ rounds, seconds }) {
    const bare = series("limit: the same rows with bare bun:sqlite, 1,000 a transaction", "/s")
    const ours = series("ours, relay held", "/s")
    const p99 = series("ours, relay held: p99 of a request", "ms")

    using template = scratchFolder()
    using relay = heldRelay()
    await sendBatches(template.path, relay, 0.2)
    for (let round = 0; round < rounds; round++) {
      bare.values.push(
        await bareInserts(template.path, BARE_MESSAGES_A_SECOND * seconds, BARE_MESSAGES),
      )
      using scratch = scratchFolder()
      const answers = await sendBatches(scratch.path, relay, seconds)
      ours.values.push(answers.per_second * A_BATCH)
      p99.values.push(answers.p99_ms)
    }
    return {
      series: [bare, ours, p99],
      verdicts: [atLeast("to the bare inserts", ratioOf(ours, bare), 0.35)],
      notes: [
        "Each message is of 1 KB. The limit writes message, content, event and job with the service's own tables, indexes, pragmas and values; no JSON, no HTTP, no idempotency key.",
        "Every answer was 2xx, and after `kill -9` the database held 100 messages, contents and events for each.",
      ],
    }
  },
}

async function sendBatches(folder: string, relay: HeldRelay, seconds: number): Promise<Answers> {
  const key = await initialise(folder)
  await using server = await serve(folder, key, relay.environment)
  const answers = await post({
    url: `${server.url}/v1/emails/batch`,
    headers: server.headers,
    body: manyMails(folder, relay.from, A_BATCH),
    connections: CONNECTIONS,
    seconds,
  })
  await server.kill()
  using database = databaseOf(folder)
  const sent = answers.answered * A_BATCH
  for (const table of ["messages", "message_contents", "events"]) {
    requireEqual(table, sent, countRows(database, table))
  }
  requireEqual("idempotency keys", answers.answered, countRows(database, "idempotency"))
  return answers
}

interface BareRows {
  kind: "messages" | "published" | "inbound_emails"
  /** So many in one transaction. */
  together: number
}

/** The rows of one message or mail that a service wrote in this folder, so many times. How many a second. */
export async function bareInserts(
  template: string,
  count: number,
  { kind, together }: BareRows,
): Promise<number> {
  using scratch = scratchFolder()
  const script = `${import.meta.dir}/bare-inserts.ts`
  const source = join(template, "data", "belfry.db")
  const child = Bun.spawn({
    cmd: [process.execPath, script, source, scratch.path, `${count}`, `${together}`, kind],
    stdout: "pipe",
    stderr: "inherit",
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error("the bare inserts failed")
  const { per_second, stored } = JSON.parse(text) as { per_second: number; stored: number }
  requireEqual("bare rows", count, stored)
  return per_second
}
