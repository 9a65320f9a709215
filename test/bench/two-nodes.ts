import { readFileSync } from "node:fs"
import { join } from "node:path"
import { freshDatabase, postgresFolder, startPostgres } from "../harness/postgres"
import { atLeast, type Bench, ratioOf, requireEqual, series } from "./bench"
import { manyLetters, oneLetter } from "./mail"
import { nanosecondsOf } from "./processor"
import { FROM, relayTo } from "./relayed"
import { scratchFolder } from "./scratch"
import { initialise, type Serving, serve } from "./serving"
import { countingSink, type Sink } from "./sink"
import { post } from "./wrk"

const SHARE = 0.25
/** Unused time is lost after so long, as with the quota of a cgroup. */
const PERIOD_MS = 100
const LOOK_MS = 4
const QUEUED = { full: 3000, quick: 400 }
/** Times the length of a measurement: so long the runtime goes on compiling. */
const WARM_UP = 2
const BATCH = 100
const BYTES = 4096
/** How long before they are due the messages begin to be queued. */
const AHEAD_MS = 5_000

export const twoNodes: Bench = {
  name: "two-nodes",
  title: "one and two nodes on one Postgres, each with a quarter of a core, draining a queue",

  async run({ rounds, seconds }) {
    const programs = postgresFolder()
    if (!programs) throw new Error("needs Postgres (apt-get install postgresql)")
    await using server = await startPostgres(programs)
    process.env.BELFRY_TEST_POSTGRES = server.url // for `freshDatabase`
    await using sink = await countingSink()
    const one = series("one node", "/s")
    const two = series("two nodes", "/s")
    const share = series("of a core, taken by each of two nodes", "")
    const messages = seconds < 5 ? QUEUED.quick : QUEUED.full
    const load = { sink, warm_seconds: WARM_UP * seconds, messages }
    for (let round = 0; round < rounds; round++) {
      one.values.push((await drain(1, load)).per_second)
      const both = await drain(2, load)
      two.values.push(both.per_second)
      share.values.push(both.share)
    }
    return {
      series: [one, two, share],
      verdicts: [atLeast("two nodes to one", ratioOf(two, one), 1.7)],
      notes: [
        `${messages.toLocaleString("en")} messages of 4 KB, all due at the same moment: from the first one at the sink to the last. Every node is warm: it accepted and delivered for ${WARM_UP * seconds} s before, with all cores.`,
        "A node that is ahead of its share of processor time is stopped (SIGSTOP) until it is not. Postgres and the sink have all cores. The sink had each message once.",
      ],
    }
  },
}

interface Load {
  sink: Sink
  warm_seconds: number
  messages: number
}

async function drain(count: 1 | 2, { sink, warm_seconds: seconds, messages }: Load) {
  await using database = await freshDatabase()
  using scratch = scratchFolder()
  using other = scratchFolder()
  const environment = {
    ...relayTo(sink.port),
    BELFRY_SENDING_DOMAINS: "bench.test",
    BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    BELFRY_STORAGE_BLOBS_DIR: join(scratch.path, "blobs"),
    DATABASE_URL: database.url,
  }
  const key = await initialise(scratch.path, environment)
  await using first = await serve(scratch.path, key, environment)
  await using second = count === 2 ? await serve(other.path, key, environment) : undefined
  const nodes = second ? [first, second] : [first]

  const before = sink.messages()
  const body = oneLetter(scratch.path, FROM, BYTES)
  const warmed = nodes.map(({ url, headers }) =>
    post({ url: `${url}/v1/emails`, headers, body, connections: 20, seconds }),
  )
  const warm = (await Promise.all(warmed)).reduce((sum, { answered }) => sum + answered, before)
  await sink.received(warm)
  await queue(first, manyLetters(scratch.path, FROM, BATCH, BYTES), messages)
  requireEqual("messages at the sink before they are due", warm, sink.messages())

  using held = new DisposableStack()
  for (const { pid } of nodes) held.use(holdTo(SHARE, pid))
  const begun = await sink.received(warm + 1)
  const spent = nodes.map(({ pid }) => nanosecondsOf(pid))
  const taken = (await sink.received(warm + messages)) - begun
  const used = nodes.reduce((sum, { pid }, at) => sum + nanosecondsOf(pid) - (spent[at] ?? 0), 0)
  held.dispose()
  await Promise.all(nodes.map(({ stop }) => stop())) // all they have to write is written then
  requireEqual("messages at the sink", warm + messages, sink.messages())
  return { per_second: (messages / taken) * 1000, share: used / 1e6 / taken / count }
}

/** Resolves when all are queued, before they are due. */
async function queue({ url, headers }: Serving, letters: string, messages: number) {
  const due = Date.now() + AHEAD_MS
  const { messages: batch } = JSON.parse(readFileSync(letters, "utf8")) as { messages: object[] }
  const scheduled_at = new Date(due).toISOString()
  const body = JSON.stringify({ messages: batch.map((one) => ({ ...one, scheduled_at })) })
  const json = { ...headers, "content-type": "application/json" }
  const request = { method: "POST", headers: json, body }
  for (let left = messages; left > 0; left -= BATCH) {
    const { status } = await fetch(`${url}/v1/emails/batch`, request)
    if (status >= 300) throw new Error(`a batch was answered ${status}`)
  }
  if (Date.now() > due) throw new Error("the messages were due before all were queued")
}

/** Stops the process while it has taken more than its share of one core. */
function holdTo(share: number, pid: number): Disposable {
  const most = PERIOD_MS * share
  let credit = 0
  let is_stopped = false
  let at = performance.now()
  let spent = nanosecondsOf(pid)
  const look = () => {
    const [before, spent_before] = [at, spent]
    at = performance.now()
    spent = nanosecondsOf(pid)
    credit = Math.min(most, credit + (at - before) * share) - (spent - spent_before) / 1e6
    if (is_stopped === credit < 0) return
    is_stopped = credit < 0
    process.kill(pid, is_stopped ? "SIGSTOP" : "SIGCONT")
  }
  const timer = setInterval(look, LOOK_MS)
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      process.kill(pid, "SIGCONT")
    },
  }
}
