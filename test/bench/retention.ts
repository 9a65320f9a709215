import { atMost, type Bench, ratioOf, type Series, series } from "./bench"
import { filled } from "./growth"
import { oneMail } from "./mail"
import { scratchFolder } from "./scratch"
import { countRows, databaseOf, type Serving, serve } from "./serving"

const MESSAGES = 1_000_000
const QUICK_MESSAGES = 100_000
const FROM = "bench@mailbox.test"

const PER_SECOND = 500
/** Requests leave together in turns of so many milliseconds. */
const TURN_MS = 10

/** The first look of the retention, and some seconds for what the start has to do. */
const FIRST_LOOK_MS = 60_000
const WARM_MS = 10_000
const MARGIN_MS = 2000

/** Messages of the last 29 days, moved so far back that contents of all and a part of the messages are over. */
const AGE_DAYS = 75

/** One start of the server measures both, the first of them before the first look. */
const LONGEST_S = 30

export const retention: Bench = {
  name: "retention",
  title:
    "accepts at 500 a second while retention removes what a million messages left, against before",

  async run({ rounds, seconds }) {
    const is_quick = rounds <= 2
    const size = is_quick ? QUICK_MESSAGES : MESSAGES
    const measured_ms = Math.min(seconds * 8, LONGEST_S) * 1000
    const figures = {
      before: { p50: series("p50 before", "ms"), p99: series("p99 before", "ms") },
      during: { p50: series("p50 while rows go", "ms"), p99: series("p99 while rows go", "ms") },
      removed: series("messages and contents removed", "/s"),
    }
    using folder = scratchFolder()
    const key = await filled(folder.path, size, AGE_DAYS)
    const rows = rowsIn(folder.path)
    const begun = performance.now()
    let sent = 0
    {
      await using server = await serve(folder.path, key)
      const body = await Bun.file(oneMail(folder.path, FROM)).text()
      sent += (await sending(server, body, WARM_MS)).length
      sent += add(figures.before, await sending(server, body, measured_ms))
      const wait = FIRST_LOOK_MS + MARGIN_MS - (performance.now() - begun)
      if (wait > 0) await Bun.sleep(wait)
      sent += add(figures.during, await sending(server, body, measured_ms))
      await server.stop()
    }
    const gone_s = (performance.now() - begun - FIRST_LOOK_MS) / 1000
    const gone = rows + 2 * sent - rowsIn(folder.path) // a message has a content
    if (gone <= 0) throw new Error("nothing was removed meanwhile")
    figures.removed.values.push(gone / gone_s)
    return {
      series: [
        ...[figures.before.p50, figures.before.p99, figures.during.p50, figures.during.p99],
        figures.removed,
      ],
      verdicts: [atMost("accept p99", ratioOf(figures.during.p99, figures.before.p99), 1.5, "×")],
      notes: [
        `${size.toLocaleString("en")} messages with content, sent bytes, attempt and events, of which all contents and half of the messages are over. Requests leave ${PER_SECOND} times a second, whether earlier ones were answered or not; a time counts from the moment at which its request should leave. Both halves come from one start of the server, before and after its first look.`,
      ],
    }
  },
}

interface Percentiles {
  p50: Series
  p99: Series
}

/** Enters the percentiles of the times. Returns how many there are. */
export function add({ p50, p99 }: Percentiles, times: number[]): number {
  times.sort((one, other) => one - other)
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN
  p50.values.push(at(0.5))
  p99.values.push(at(0.99))
  return times.length
}

function rowsIn(folder: string): number {
  using database = databaseOf(folder)
  return countRows(database, "messages") + countRows(database, "message_contents")
}

/** Sends at a fixed rate. Resolves with the time of each answer, in ms. */
export async function sending(server: Serving, body: string, during_ms: number): Promise<number[]> {
  const headers = { ...server.headers, "Content-Type": "application/json" }
  const times: number[] = []
  const running: Promise<void>[] = []
  const begun = performance.now()
  const a_turn = (PER_SECOND * TURN_MS) / 1000
  for (let turn = 0; turn * TURN_MS < during_ms; turn++) {
    const due = begun + turn * TURN_MS
    const wait = due - performance.now()
    if (wait > 0) await Bun.sleep(wait)
    for (let nth = 0; nth < a_turn; nth++) {
      running.push(
        fetch(`${server.url}/v1/emails`, { method: "POST", headers, body }).then(async (answer) => {
          await answer.arrayBuffer()
          if (answer.status !== 201) throw new Error(`a send was answered ${answer.status}`)
          times.push(performance.now() - due)
        }),
      )
    }
  }
  await Promise.all(running)
  return times
}
