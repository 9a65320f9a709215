import { atMost, type Report, ratioOf, requireEqual, type Series, series } from "./bench"
import { LivePages } from "./live-pages"
import { nanosecondsOf } from "./processor"
import type { Serving } from "./serving"
import { StreamClients } from "./stream-clients"

/** The first seconds are the hard ones: all pages hear of the load at once. */
const LENGTHS = [5, 10]
const RATE = 500
/** The first messages of a server wait for its code to be compiled. */
const WARM_SECONDS = 5
const LIVE = 50
const NANOSECONDS_PER_MICROSECOND = 1000
const PAUSE_MS = 1_000

/** One load: what was measured alone, and beside something. */
interface Load {
  p99: Series
  cost: Series
}

const loadOf = (what: string, seconds: number): Load => ({
  p99: series(`accept p99, ${seconds} s of load, ${what}`, "ms"),
  cost: series(`the same: processor of the server for a message`, "µs"),
})

/** Accepts at an even pace: alone, beside 50 live pages, and beside 50 clients that hear everything. */
export async function liveLoad(server: Serving, rounds: number): Promise<Report> {
  await acceptance(server, WARM_SECONDS)
  const report: Report = { series: [], verdicts: [], notes: [NOTE] }
  for (const seconds of LENGTHS) {
    const alone = loadOf("no page open", seconds)
    const pages = loadOf(`${LIVE} live pages`, seconds)
    const clients = loadOf(`${LIVE} clients of the whole stream`, seconds)
    for (let round = 0; round < rounds; round++) {
      await measure(server, seconds, alone)
      {
        await using open = new LivePages(server, LIVE)
        await open.ready
        await measure(server, seconds, pages)
        open.requireLooks()
      }
      await using all = await StreamClients.open(server, LIVE)
      await measure(server, seconds, clients)
      await all.requireAll()
    }
    for (const { p99, cost } of [alone, pages, clients]) report.series.push(p99, cost)
    const ratio = ratioOf(pages.p99, alone.p99)
    const what = `accept p99 with ${LIVE} live pages, of that without, ${seconds} s of load`
    report.verdicts.push(atMost(what, ratio, 1.5, "×"))
  }
  return report
}

const NOTE = `A live page is a client that asks and listens as the page does. ${RATE} messages a second come one by one. Server, clients and sender run on the same cores.`

async function measure(server: Serving, seconds: number, { p99, cost }: Load) {
  await Bun.sleep(PAUSE_MS)
  const before = nanosecondsOf(server.pid)
  p99.values.push(await acceptance(server, seconds))
  const spent = nanosecondsOf(server.pid) - before
  cost.values.push(spent / NANOSECONDS_PER_MICROSECOND / (seconds * RATE))
}

export const letter = (subject: string) => ({
  to: "ann@mailbox.test",
  from: "me@mailbox.test",
  subject,
  text: "Thank you.",
})

/** The 99th percentile of accepting one message, at an even pace, in milliseconds. */
async function acceptance({ url, headers }: Serving, seconds: number): Promise<number> {
  const times: number[] = []
  const begun = performance.now()
  const under_way: Promise<void>[] = []
  const body = JSON.stringify(letter("Load"))
  for (let number = 0; number < seconds * RATE; number++) {
    const due = begun + (number / RATE) * 1000
    if (due > performance.now()) await Bun.sleep(due - performance.now())
    under_way.push(
      (async () => {
        const asked = performance.now()
        const answer = await fetch(`${url}/v1/emails`, {
          method: "POST",
          headers: { ...headers, "content-type": "application/json" },
          body,
        })
        await answer.arrayBuffer()
        requireEqual("status of a message", 201, answer.status)
        times.push(performance.now() - asked)
      })(),
    )
  }
  await Promise.all(under_way)
  const sorted = times.sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
}
