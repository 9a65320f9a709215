import { readFileSync } from "node:fs"
import { newId, shownId } from "../../src/core/ids"
import { growProject } from "../harness/grown-project"
import { readCalls } from "../harness/read-calls"
import { atMost, type Bench, median, series } from "./bench"
import { measure, twoProjects } from "./fairness"
import { oneMail } from "./mail"
import { type Scratch, scratchFolder } from "./scratch"
import { databaseOf, type Serving, serve } from "./serving"

const SMALL = 2000
const LARGE = 200_000
const TRIES = 7
/** Shorter calls differ by chance. */
const NOTABLE_MS = 2
const WORST = 5
const FROM = "me@mailbox.test"

interface Cost {
  /** The shortest: what others do on the machine is no part of it. */
  ms: number
  /** Processor time of the main thread. */
  loop_ms: number
}

export const reads: Bench = {
  name: "reads",
  title: `each GET with each filter among ${LARGE.toLocaleString("en")} rows of each table, and another project's accept beside the worst`,
  rounds: 1,

  async run({ seconds }) {
    using scratch = scratchFolder()
    const { path } = scratch
    const keys = await madeKeys(scratch)
    const ids = idsOf()
    const small = await measured(path, keys.flood, ids, { from: 0, to: SMALL })
    const large = await measured(path, keys.flood, ids, { from: SMALL, to: LARGE })
    const rows = [...large].map(([address, cost]) => {
      const before = small.get(address)?.ms ?? Number.NaN
      return { address, ...cost, before, ratio: cost.ms / before }
    })
    const by = (value: (row: (typeof rows)[number]) => number) =>
      [...rows].sort((one, other) => value(other) - value(one))
    const [worst] = by(({ loop_ms }) => loop_ms)
    // A short list has no page 100. Pages by number end at row 10,000.
    const slower = by(({ address, ratio, ms }) =>
      ms > NOTABLE_MS && !address.includes("page=") ? ratio : 0,
    )
    const alone = pair("accept alone")
    const beside = pair("beside two loops of the worst call")
    {
      await using server = await serve(path, "")
      const body = readFileSync(oneMail(path, FROM))
      const neighbour = () => measure(server, keys.neighbour, body, seconds)
      await neighbour() // warm
      note(alone, await neighbour())
      const stop = new AbortController()
      const loops = [1, 2].map(async () => {
        while (!stop.signal.aborted) await asked(server, keys.flood, worst?.address ?? "")
      })
      note(beside, await neighbour())
      stop.abort()
      await Promise.all(loops)
    }
    const shown = (row: (typeof rows)[number]) =>
      `\`${row.address}\` ${row.before.toFixed(1)} → ${row.ms.toFixed(1)} ms, ${row.loop_ms.toFixed(1)} ms of the loop`
    const ratio = (name: "p50" | "p99") => median(beside[name].values) / median(alone[name].values)
    return {
      series: [alone.p50, alone.p99, beside.p50, beside.p99],
      verdicts: [
        atMost(`growth of the slowest above ${NOTABLE_MS} ms`, slower[0]?.ratio ?? 0, 2, "×"),
        atMost("the loop, of the worst call", worst?.loop_ms ?? 0, 15, "ms"),
        atMost("accept beside the worst: p50", ratio("p50"), 2, "×"),
        atMost("accept beside the worst: p99", ratio("p99"), 2, "×"),
      ],
      notes: [
        `${rows.length} calls, each ${TRIES} times. Beside them: two loops of the worst call of one key.`,
        `Most of the loop: ${by(({ loop_ms }) => loop_ms)
          .slice(0, WORST)
          .map(shown)
          .join("; ")}.`,
        `Most growth: ${slower.slice(0, WORST).map(shown).join("; ")}.`,
      ],
    }
  },
}

const pair = (name: string) => ({
  p50: series(`${name}: p50`, "ms"),
  p99: series(`${name}: p99`, "ms"),
})

function note(of: ReturnType<typeof pair>, found: { p50: number; p99: number }) {
  of.p50.values.push(found.p50)
  of.p99.values.push(found.p99)
}

/** Of the project whose rows grow, and of another one. */
async function madeKeys(scratch: Scratch) {
  await using server = await serve(scratch.path, "")
  const keys = await twoProjects(server, scratch)
  await server.stop()
  return keys
}

const idsOf = () => ({
  email_id: newId(),
  template_id: newId(),
  subscriber_id: newId(),
  webhook_id: newId(),
  topic_id: newId(),
  application_id: newId(),
  environment_id: newId(),
  organization_id: newId(),
  end_user_id: newId(),
})

const GROWING = "SELECT id, account_id FROM projects WHERE NOT hidden AND name <> 'Neighbour'"

/** The rows grow while nobody serves them. */
async function measured(
  folder: string,
  key: string,
  ids: ReturnType<typeof idsOf>,
  numbers: { from: number; to: number },
): Promise<Map<string, Cost>> {
  const costs = new Map<string, Cost>()
  let project_id = ""
  {
    using database = databaseOf(folder)
    database.run("PRAGMA synchronous = OFF")
    const row = database.query(GROWING).get() as Record<"id" | "account_id", Uint8Array>
    project_id = shownId(row.id)
    const owner = { project_id, account_id: shownId(row.account_id) }
    await growProject(database, owner, ids, numbers)
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
  }
  await using server = await serve(folder, "")
  for (const address of readCalls("key", { ...ids, project_id })) {
    if (address.endsWith("/export")) continue // they are as long as what they hold
    if ((await asked(server, key, address)) >= 400) continue // without permission, or nothing there
    const times: number[] = []
    const before = loopNanoseconds(server.pid)
    for (let at = 0; at < TRIES; at++) {
      const begun = performance.now()
      await asked(server, key, address)
      times.push(performance.now() - begun)
    }
    const loop_ms = (loopNanoseconds(server.pid) - before) / TRIES / 1e6
    costs.set(address, { ms: Math.min(...times), loop_ms })
    if (process.env.BENCH_VERBOSE)
      console.log(address, Math.min(...times).toFixed(1), loop_ms.toFixed(1))
  }
  return costs
}

/** Its status. */
async function asked({ url }: Serving, key: string, address: string): Promise<number> {
  const answer = await fetch(`${url}${address}`, { headers: { "x-api-key": key } })
  await answer.arrayBuffer()
  return answer.status
}

function loopNanoseconds(pid: number): number {
  const [spent = "0"] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")
  return Number(spent)
}
