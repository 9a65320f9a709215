import { readFileSync } from "node:fs"
import { atLeast, atMost, type Bench, median, ratioOf, requireEqual, series } from "./bench"
import { heldRelay } from "./held-relay"
import { manyLetters, oneLetter } from "./mail"
import { residentMegabytes } from "./memory"
import { type RecordingSink, recordingSink } from "./recorded"
import { FROM, relayed, relayTo } from "./relayed"
import { type Scratch, scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, type Serving, serve } from "./serving"
import { countingSink } from "./sink"
import { post } from "./wrk"

/** BELFRY_BENCH_BACKLOG=1000000 is the size the target is about; it takes some minutes. */
const QUEUED = Number(process.env.BELFRY_BENCH_BACKLOG ?? 50_000)
const BATCH = 100
const BYTES = 4096
const ACCEPT_SECONDS = 3
const VOUCHED = { BELFRY_SENDING_DOMAINS: "bench.test" }

export const backlog: Bench = {
  name: "backlog",
  title: `${QUEUED.toLocaleString("en")} queued, drained to a sink, \`kill -9\` half way`,

  async run({ rounds, seconds }) {
    const rate = series("the rate of `deliver`, unsigned", "/s")
    const drained = series("ours, draining", "/s")
    const beside = series("ours, draining while requests are answered", "/s")
    const idle = series("accept p99, relay held", "ms")
    const busy = series("accept p99, draining", "ms")
    const cold = series("accept p99, draining, first seconds after the restart", "ms")
    const grown = series("memory, most while draining over the first second", "MB")
    const twice = series("messages that came twice, after the kill", "messages")
    for (let round = 0; round < Math.min(rounds, QUEUED > 100_000 ? 1 : rounds); round++) {
      await using counting = await countingSink()
      const load = { bytes: BYTES, seconds, signed: false }
      rate.values.push((await relayed(counting, load)).per_second)
      const found = await drain(seconds)
      drained.values.push(found.per_second)
      beside.values.push(found.beside_per_second)
      idle.values.push(found.idle_p99)
      busy.values.push(found.busy_p99)
      cold.values.push(found.cold_p99)
      grown.values.push(found.grown_mb)
      twice.values.push(found.twice)
    }
    return {
      series: [rate, drained, beside, idle, busy, cold, grown, twice],
      verdicts: [
        atLeast("draining, to the rate of `deliver`", ratioOf(drained, rate), 0.9),
        atMost("memory", median(grown.values), 64, "MB"),
        atMost("accept p99, draining to held", ratioOf(busy, idle), 3, "×"),
      ],
      notes: [
        "The sink knows every message by its Message-ID: none was missing in the end, and each was marked as sent. Those that came twice were on the wire when the process was killed.",
      ],
    }
  },
}

async function drain(seconds: number) {
  using scratch = scratchFolder()
  const key = await initialise(scratch.path)
  const held = await fill(scratch, key, seconds)
  await using sink = await recordingSink()
  const environment = { ...relayTo(sink.port), ...VOUCHED }

  const begun = performance.now()
  const first = await measuredHalf(scratch, { key, environment, sink })
  const rate = (sink.different() / (performance.now() - begun)) * 1000
  await using server = await serve(scratch.path, key, environment)
  const cold = await accepts(scratch, server, seconds)
  // As the one whose relay was held, it is no longer in its first seconds.
  await sink.has(QUEUED * (1 / 2 + 1 / 20))
  const [during, beside] = await Promise.all([
    accepts(scratch, server, seconds),
    sink.rate(Math.min(seconds, ACCEPT_SECONDS)),
  ])
  if (sink.different() >= QUEUED) throw new Error("the queue was empty before the requests ended")
  const expected = held.accepted + cold.answered + during.answered
  await sink.has(expected)
  await server.stop() // the sink has them a moment before we have written that it does
  using database = databaseOf(scratch.path)
  requireEqual("messages sent", expected, countRows(database, "messages WHERE status = 'sent'"))
  requireEqual("messages that wait", 0, countRows(database, "messages WHERE state <> 4"))
  return {
    per_second: rate,
    beside_per_second: beside,
    idle_p99: held.p99_ms,
    busy_p99: during.p99_ms,
    cold_p99: cold.p99_ms,
    grown_mb: first.grown_mb,
    twice: sink.messages() - expected,
  }
}

/** Queues everything behind a relay that never greets, and measures there how fast one more gets in. */
async function fill(scratch: Scratch, key: string, seconds: number) {
  using relay = heldRelay()
  await using server = await serve(scratch.path, key, relay.environment)
  const body = readFileSync(manyLetters(scratch.path, FROM, BATCH, BYTES))
  let left = QUEUED / BATCH
  const lane = async () => {
    while (left-- > 0) {
      const headers = { ...server.headers, "Content-Type": "application/json" }
      const url = `${server.url}/v1/emails/batch`
      const { status } = await fetch(url, { method: "POST", headers, body })
      if (status >= 300) throw new Error(`a batch was answered ${status}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
  const { answered, p99_ms } = await accepts(scratch, server, seconds)
  await server.kill()
  return { accepted: QUEUED + answered, p99_ms }
}

const accepts = (scratch: Scratch, server: Serving, seconds: number) =>
  post({
    url: `${server.url}/v1/emails`,
    headers: server.headers,
    body: oneLetter(scratch.path, FROM, BYTES),
    connections: 8,
    seconds: Math.min(seconds, ACCEPT_SECONDS),
  })

interface Half {
  key: string
  environment: Record<string, string>
  sink: RecordingSink
}

/** Drains until half is gone, then `kill -9`. */
async function measuredHalf(scratch: Scratch, { key, environment, sink }: Half) {
  await using server = await serve(scratch.path, key, environment)
  await sink.has(QUEUED / 20)
  const before = residentMegabytes(server.pid)
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, residentMegabytes(server.pid))
  }, 100)
  await sink.has(QUEUED / 2)
  clearInterval(timer)
  await server.kill()
  return { grown_mb: most - before }
}
