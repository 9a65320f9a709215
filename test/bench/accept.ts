import { readLines } from "../harness/lines"
import { atLeast, atMost, type Bench, median, ratioOf, requireEqual, series } from "./bench"
import { heldRelay } from "./held-relay"
import { oneMail } from "./mail"
import { postfixAccepts, withoutPostfix } from "./postfix"
import { type Scratch, scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, serve } from "./serving"
import { type Answers, post } from "./wrk"

const CONNECTIONS = 64
const POSTFIX_MESSAGES = 4000
const READY_MS = 10_000

export const accept: Bench = {
  name: "accept",
  title: "`POST /v1/emails` of 1 KB, 64 connections, durable before the answer",

  async run({ rounds, seconds }) {
    const bare = series("limit: bare `Bun.serve`, JSON in and out", "/s")
    const held = series("ours, relay held: accept alone", "/s")
    const p99 = series("ours, relay held: p99", "ms")
    const delivering = series("ours, delivering to the mailbox meanwhile", "/s")
    const delivering_p99 = series("ours, delivering: p99", "ms")
    const delivered = series("ours, delivering: delivered within the run", "messages")
    const postfix = series("peer: Postfix accept (`smtp-source`, mail put on hold)", "/s")
    const absent = withoutPostfix()

    for (let round = 0; round < rounds; round++) {
      bare.values.push((await barePost(seconds)).per_second)

      const alone = await acceptHeld(seconds)
      held.values.push(alone.per_second)
      p99.values.push(alone.p99_ms)

      if (!absent) postfix.values.push((await postfixAccepts(POSTFIX_MESSAGES)).per_second)

      const busy = await acceptDelivering(seconds)
      delivering.values.push(busy.per_second)
      delivering_p99.values.push(busy.p99_ms)
      delivered.values.push(busy.delivered)
    }
    return {
      series: [bare, held, p99, postfix, delivering, delivering_p99, delivered],
      verdicts: [
        atLeast("relay held, to bare POST", ratioOf(held, bare), 0.3),
        atMost("relay held, p99", median(p99.values), 30, "ms"),
        ...(absent ? [] : [atLeast("relay held, to Postfix", ratioOf(held, postfix), 15)]),
      ],
      notes: [
        "The targets are about accepting alone, so they are judged where the relay takes a connection and never greets. The same with the embedded mailbox delivering meanwhile stands beside it.",
        "Every answer was 2xx. After each run the server was killed (`kill -9`), and its database held exactly as many messages, idempotency keys, queued events and (relay held) messages that wait as there were answers.",
        ...(absent ? [`Not measured: Postfix (${absent}).`] : []),
      ],
    }
  },
}

async function barePost(seconds: number): Promise<Answers> {
  using scratch = scratchFolder()
  const script = `${import.meta.dir}/bare-post.ts`
  const child = Bun.spawn({ cmd: [process.execPath, script], stdout: "pipe", stderr: "inherit" })
  try {
    const url = await readLines(child.stdout).first(() => true, READY_MS)
    return await send(scratch, { url, headers: {} }, "shop@bench.test", seconds)
  } finally {
    child.kill()
    await child.exited
  }
}

/** Accepting alone: the relay takes a connection and never greets. */
export async function acceptHeld(
  seconds: number,
  environment: Record<string, string> = {},
): Promise<Answers> {
  using scratch = scratchFolder()
  using relay = heldRelay()
  const key = await initialise(scratch.path, environment)
  await using server = await serve(scratch.path, key, { ...environment, ...relay.environment })
  const answers = await send(scratch, emails(server), relay.from, seconds)
  await server.kill()
  using database = databaseOf(scratch.path)
  requireStored(database, answers.answered)
  requireEqual("waiting", answers.answered, countRows(database, "messages WHERE state = 0"))
  return answers
}

async function acceptDelivering(seconds: number) {
  using scratch = scratchFolder()
  const key = await initialise(scratch.path)
  await using server = await serve(scratch.path, key)
  const answers = await send(scratch, emails(server), "shop@mailbox.test", seconds)
  await server.kill()
  using database = databaseOf(scratch.path)
  requireStored(database, answers.answered)
  const delivered = countRows(database, "messages WHERE status = 'delivered'")
  const mails = countRows(database, "mailbox_mails")
  if (mails < delivered) throw new Error(`${delivered} messages delivered, ${mails} mails arrived`)
  return { ...answers, delivered }
}

function requireStored(database: ReturnType<typeof databaseOf>, answered: number) {
  requireEqual("messages", answered, countRows(database, "messages"))
  requireEqual("contents", answered, countRows(database, "message_contents"))
  requireEqual("idempotency keys", answered, countRows(database, "idempotency"))
  const queued = countRows(database, "events WHERE type = 'email.queued'")
  requireEqual("events", answered, queued)
}

interface Target {
  url: string
  headers: Record<string, string>
}

const emails = ({ url, headers }: Target): Target => ({ url: `${url}/v1/emails`, headers })

const send = (scratch: Scratch, target: Target, from: string, seconds: number) =>
  post({
    ...target,
    headers: { Authorization: "Bearer nobody", ...target.headers },
    body: oneMail(scratch.path, from),
    connections: CONNECTIONS,
    seconds,
  })
