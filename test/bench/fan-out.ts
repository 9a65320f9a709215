import { statSync } from "node:fs"
import { join } from "node:path"
import { loadSettings } from "../../src/core/config"
import { projects } from "../../src/identity/tables"
import { openStore } from "../../src/store/open"
import { audience } from "../fan-out/audiences"
import { bareInserts } from "./batch"
import { atLeast, atMost, type Bench, median, ratioOf, requireEqual, series } from "./bench"
import { heldRelay } from "./held-relay"
import { oneLetter, textOf } from "./mail"
import { residentMegabytes } from "./memory"
import { recordingSink } from "./recorded"
import { FROM, relayTo } from "./relayed"
import { type Scratch, scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, type Serving, serve } from "./serving"
import { post } from "./wrk"

/** BELFRY_BENCH_FAN_OUT=200000 is the size the target is about. */
const RECIPIENTS = Number(process.env.BELFRY_BENCH_FAN_OUT ?? 50_000)
/** Of these the mail is delivered, to see what a recipient takes on disk in the end. */
const DELIVERED = Math.min(RECIPIENTS, 10_000)
const MAIL_BYTES = 20_000
const BARE_A_ROUND = 50_000
const BARE_MESSAGES = { kind: "published", together: 1000 } as const
const ACCEPT_SECONDS = 3
const VOUCHED = { BELFRY_BASE_URL: "https://belfry.test", BELFRY_SENDING_DOMAINS: "bench.test" }
const TOPIC = "/v1/topics/releases"
const ROUNDS = 3
/** In its first second a process fills its caches, whatever it does. */
const FIRST_MS = 1000

export const fanOut: Bench = {
  name: "fan-out",
  title: `A publish to ${RECIPIENTS.toLocaleString("en")} members of a topic, a mail of 20 KB`,

  async run({ rounds, seconds }) {
    const bare = series("limit: the same rows with bare bun:sqlite, 1,000 a transaction", "/s")
    const ours = series("ours, relay held", "/s")
    const first = series("from the request to the first message at the sink", "ms")
    const grown = series("memory, most while the messages are written over the first second", "MB")
    const disk = series("disk a recipient, delivered", "bytes")
    const idle = series("accept p99, relay held", "ms")
    const busy = series("accept p99 while the messages are written", "ms")
    for (let round = 0; round < Math.min(rounds, ROUNDS); round++) {
      using scratch = scratchFolder()
      const written = await write(scratch)
      ours.values.push(written.per_second)
      grown.values.push(written.grown_mb)
      bare.values.push(await bareInserts(scratch.path, BARE_A_ROUND, BARE_MESSAGES))
      const besides = await acceptBeside(seconds)
      idle.values.push(besides.idle_p99)
      busy.values.push(besides.busy_p99)
      const delivered = await deliver()
      first.values.push(delivered.first_ms)
      disk.values.push(delivered.bytes)
    }
    return {
      series: [bare, ours, first, grown, disk, idle, busy],
      verdicts: [
        atLeast("to the bare inserts", ratioOf(ours, bare), 0.35),
        atMost("the first message at the sink", median(first.values), 2000, "ms"),
        atMost("memory", median(grown.values), 64, "MB"),
        atMost("disk a recipient", median(disk.values), 3000, "bytes"),
        atMost("accept p99, beside to alone", ratioOf(busy, idle), 3, "×"),
      ],
      notes: [
        "The limit writes message, content, event and unsubscribe link with the service's own tables, indexes, pragmas and values. Ours also decides for each recipient, and counts.",
        "Each member got one message, and the counts of the publish are those of the rows.",
      ],
    }
  },
}

interface Filled {
  key: string
}

/** A project whose topic has so many members. */
async function fill(scratch: Scratch, members: number): Promise<Filled> {
  const key = await initialise(scratch.path)
  const data_dir = join(scratch.path, "data")
  const store = await openStore({ ...loadSettings({ environment: {} }).values, data_dir })
  const [project] = await store.read.select({ id: projects.id }).from(projects)
  await audience(
    store,
    { project_id: project?.id ?? "" },
    Array.from({ length: members }, (_, nth) => ({ name: `Reader ${nth}` })),
  )
  await store.close()
  return { key }
}

interface PublishState {
  id: string
  status: string
  audience: number
  channels: { email: { sent: number } }
  created_at: string
  completed_at: string | null
}

const HTML = `<p>Hello {{subscriber.name}}</p><p>${textOf(MAIL_BYTES)}</p>`

async function publish({ url, headers }: Serving): Promise<PublishState> {
  const email = { subject: "News", html: HTML, text: "Hello {{subscriber.name}}", from: FROM }
  const body = JSON.stringify({ channels: ["email"], content: { email } })
  const answer = await fetch(`${url}${TOPIC}/publish`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body,
  })
  const text = await answer.text()
  if (answer.status !== 201) throw new Error(`the publish was answered ${answer.status}: ${text}`)
  return (JSON.parse(text) as { data: PublishState }).data
}

async function stateOf({ url, headers }: Serving, id: string): Promise<PublishState> {
  const answer = await fetch(`${url}${TOPIC}/publishes/${id}`, { headers })
  return ((await answer.json()) as { data: PublishState }).data
}

async function completed(server: Serving, id: string): Promise<PublishState> {
  for (;;) {
    const state = await stateOf(server, id)
    if (state.completed_at !== null) return state
    await Bun.sleep(100)
  }
}

/** How fast all messages are written while nothing takes them. */
async function write(scratch: Scratch) {
  using relay = heldRelay()
  const { key } = await fill(scratch, RECIPIENTS)
  await using server = await serve(scratch.path, key, { ...relay.environment, ...VOUCHED })
  const { id } = await publish(server)
  await Bun.sleep(FIRST_MS)
  const before = residentMegabytes(server.pid)
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, residentMegabytes(server.pid))
  }, 100)
  const state = await completed(server, id)
  clearInterval(timer)
  await server.kill()
  using database = databaseOf(scratch.path)
  for (const table of ["messages", "message_contents"]) {
    requireEqual(table, RECIPIENTS, countRows(database, table))
  }
  requireEqual("sent", RECIPIENTS, state.channels.email.sent)
  const lasted = Date.parse(state.completed_at ?? "") - Date.parse(state.created_at)
  return { per_second: (RECIPIENTS / lasted) * 1000, grown_mb: most - before }
}

/** How long one more mail takes to get in, with and without a publish beside it. */
async function acceptBeside(seconds: number) {
  using scratch = scratchFolder()
  using relay = heldRelay()
  const { key } = await fill(scratch, RECIPIENTS)
  await using server = await serve(scratch.path, key, { ...relay.environment, ...VOUCHED })
  const idle = await accepts(scratch, server, seconds)
  const { id } = await publish(server)
  while ((await stateOf(server, id)).channels.email.sent === 0) await Bun.sleep(20)
  const busy = await accepts(scratch, server, seconds)
  if ((await stateOf(server, id)).completed_at !== null) {
    throw new Error("the publish was over before the requests ended: use more recipients")
  }
  return { idle_p99: idle.p99_ms, busy_p99: busy.p99_ms }
}

const accepts = (scratch: Scratch, server: Serving, seconds: number) =>
  post({
    url: `${server.url}/v1/emails`,
    headers: server.headers,
    body: oneLetter(scratch.path, FROM, 4096),
    connections: 8,
    seconds: Math.min(seconds, ACCEPT_SECONDS),
  })

/** From the request to the sink, and what is on disk when all of it was delivered. */
async function deliver() {
  using scratch = scratchFolder()
  await using sink = await recordingSink()
  const { key } = await fill(scratch, DELIVERED)
  const file = join(scratch.path, "data", "belfry.db")
  const before = statSync(file).size
  await using server = await serve(scratch.path, key, { ...relayTo(sink.port), ...VOUCHED })
  const begun = performance.now()
  await publish(server)
  await sink.has(1)
  const first_ms = performance.now() - begun
  await sink.has(DELIVERED)
  await server.stop()
  using database = databaseOf(scratch.path)
  requireEqual("messages sent", DELIVERED, countRows(database, "messages WHERE status = 'sent'"))
  requireEqual("messages", DELIVERED, sink.different())
  return { first_ms, bytes: (statSync(file).size - before) / DELIVERED }
}
