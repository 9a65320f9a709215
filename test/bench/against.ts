/**
 * `bun run bench --against COMMIT`: builds that commit beside this one and compares the two. Both servers
 * stay up and warm. Bursts go to them in turn, and the ratio of each pair counts: the speed of a small
 * machine drifts by more than what one change costs.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { binary } from "../harness/binary"
import { root } from "../harness/migrations"
import {
  atLeast,
  atMost,
  type Bench,
  median,
  type Report,
  requireEqual,
  type Series,
  show,
} from "./bench"
import { heldRelay } from "./held-relay"
import { textOf } from "./mail"
import { KINDS, nanosecondsByKind, type Spent } from "./processor"
import { relayTo } from "./relayed"
import { type Scratch, scratchFolder } from "./scratch"
import { type Environment, initialise, type Serving, serve } from "./serving"
import { countingSink } from "./sink"
import { post, TAIL_SECONDS } from "./wrk"

const PAIRS = 10
const BURST_SECONDS = 2
const WARM_SECONDS = 10
/** The lower end of the interval may be so much. */
const MOST = 1.15

/** The oldest anchor; what is demanded beside it means nothing beside a newer commit. */
const ANCHOR = "53d3776"

/** Of the medians of the pairs' ratios. */
interface Demand {
  most_cost?: number
  least_rate?: number
}

const MAIL = { from: "shop@bench.test", to: "user@mailbox.test", subject: "Your order has shipped" }

/** Tracking is off on both sides, because its default may differ. */
const UNTRACKED = { track_opens: false, track_clicks: false }

interface Workload {
  name: string
  mail: object
  connections: number
  environment: Record<string, string>
  /** Resolves when all that was accepted has ended, with that moment. */
  ended(messages: number): Promise<number>
}

/** What one burst came to. */
interface Burst {
  per_second: number
  /** Microseconds a message. */
  cost: Spent
}

export const against = (commit: string): Bench => ({
  name: "against",
  title: `processor time a message, beside ${commit}`,
  rounds: PAIRS,

  async run() {
    const other = build(commit)
    const demandOf = (demand: Demand) => (commit.startsWith(ANCHOR) ? demand : {})
    const report: Report = { series: [], verdicts: [], notes: NOTES }
    using relay = heldRelay()
    const accepting = {
      name: "accept",
      mail: { ...MAIL, html: `<p>${textOf(700)}</p>` },
      connections: 64,
      environment: relay.environment,
      ended: async () => performance.now() - TAIL_SECONDS * 1000, // the load generator waits so long
    }
    const accepted = await inPairs(other, accepting)
    add(report, "accept, relay held, 1 KB", accepted, demandOf({ most_cost: 0.9 }))
    await using sink = await countingSink()
    let sent = 0
    const delivering = {
      name: "deliver",
      mail: { ...MAIL, text: textOf(4096) },
      connections: 20,
      environment: { ...relayTo(sink.port), BELFRY_SENDING_DOMAINS: "bench.test" },
      ended: async (messages: number) => {
        sent += messages
        const moment = await sink.received(sent)
        requireEqual("messages at the sink", sent, sink.messages())
        return moment
      },
    }
    const delivered = await inPairs(other, delivering)
    const demand = demandOf({ most_cost: 0.85, least_rate: 1.3 })
    add(report, "deliver to a sink, 4 KB", delivered, demand)
    return report
  },
})

const NOTES = [
  `Both servers stay up. Each is warm (${WARM_SECONDS} s of the same load), and bursts of ${BURST_SECONDS} s go to them in turn, the first of a pair being the other one each time.`,
  "Processor time is that of all threads (`schedstat`), from the first message offered to the last one that has ended. Ratios are ours to the other's, the median of the pairs, with the interval that holds the true median with 98 %.",
  "Tracking is off on both sides.",
]

/** The binary of a commit, built once from its own sources and libraries. */
function build(commit: string): string {
  const run = (cmd: string[], cwd = root) => {
    const { exitCode, stdout } = Bun.spawnSync({ cmd, cwd, stderr: "inherit" })
    if (exitCode !== 0) throw new Error(`${cmd.join(" ")} failed with exit code ${exitCode}`)
    return stdout.toString().trim()
  }
  const id = run(["git", "rev-parse", "--verify", `${commit}^{commit}`])
  const folder = join(root, "dist", "against", id)
  const built = join(folder, "dist", "belfry")
  if (existsSync(built)) return built
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  run(["sh", "-c", `git archive ${id} | tar -x -C "${folder}"`])
  run(["sh", "install.sh", "build"], folder)
  return built
}

interface Pair {
  ours: Burst
  other: Burst
}

async function inPairs(program: string, load: Workload): Promise<Pair[]> {
  using our_scratch = scratchFolder()
  using other_scratch = scratchFolder()
  await using ours = await begin(our_scratch, load, binary)
  await using other = await begin(other_scratch, load, program)
  await burst(ours, load, WARM_SECONDS)
  await burst(other, load, WARM_SECONDS)
  const pairs: Pair[] = []
  for (let number = 0; number < PAIRS; number++) {
    const is_first = number % 2 === 0
    const first = await burst(is_first ? ours : other, load, BURST_SECONDS)
    const second = await burst(is_first ? other : ours, load, BURST_SECONDS)
    pairs.push(is_first ? { ours: first, other: second } : { ours: second, other: first })
  }
  return pairs
}

interface Warm extends AsyncDisposable {
  server: Serving
  body: string
}

async function begin(scratch: Scratch, load: Workload, program: string): Promise<Warm> {
  const environment = { ...load.environment, ...(await unknownTo(program, scratch)) }
  const key = await initialise(scratch.path, environment, program)
  const server = await serve(scratch.path, key, environment, program)
  const body = join(scratch.path, "mail.json")
  const untracked = (await tracks(server)) ? UNTRACKED : {}
  writeFileSync(body, JSON.stringify({ ...load.mail, ...untracked }))
  return { server, body, [Symbol.asyncDispose]: server.kill }
}

/** An older version refuses settings that it does not know: what needs them is not there either. */
async function unknownTo(program: string, { path }: Scratch): Promise<Environment> {
  const refusal = await initialise(path, { BELFRY_DATA_DIR: join(path, "tried") }, program).then(
    () => "",
    (error) => String(error),
  )
  const names = [...refusal.matchAll(/- (BELFRY_\w+) \(environment\) is not a setting/g)]
  return Object.fromEntries(names.map(([, name]) => [name, undefined]))
}

/** A version that has no tracking refuses its fields, also in a request that cannot be sent. */
async function tracks({ url, headers }: Serving): Promise<boolean> {
  const answer = await fetch(`${url}/v1/emails`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(UNTRACKED),
  })
  return !/"track_opens","code":"not_available"/.test(await answer.text())
}

async function burst({ server, body }: Warm, load: Workload, seconds: number): Promise<Burst> {
  const before = nanosecondsByKind(server.pid)
  const begun = performance.now()
  const { url, headers } = server
  const { connections } = load
  const answers = await post({ url: `${url}/v1/emails`, headers, body, connections, seconds })
  const seconds_taken = ((await load.ended(answers.answered)) - begun) / 1000
  const after = nanosecondsByKind(server.pid)
  const cost = Object.fromEntries(
    KINDS.map((kind) => [kind, (after[kind] - before[kind]) / 1000 / answers.answered]),
  ) as Spent
  return { per_second: answers.answered / seconds_taken, cost }
}

const whole = ({ cost }: Burst) => KINDS.reduce((sum, kind) => sum + cost[kind], 0)

function add(report: Report, name: string, pairs: Pair[], { most_cost, least_rate }: Demand) {
  const figures: [string, string, (burst: Burst) => number][] = [
    ["rate", "/s", ({ per_second }) => per_second],
    ["processor time a message", "µs", whole],
    ...KINDS.map((kind): [string, string, (burst: Burst) => number] => [
      `of it ${kind}`,
      "µs",
      ({ cost }) => cost[kind],
    ]),
  ]
  for (const [what, unit, figure] of figures) {
    for (const side of ["ours", "other"] as const) {
      const values = pairs.map((pair) => figure(pair[side]))
      report.series.push({ name: `${name}: ${what}, ${side}`, unit, values } satisfies Series)
    }
  }
  const costs = ratiosOf(pairs, whole)
  const [low = Number.NaN, high = Number.NaN] = [costs[1], costs.at(-2)]
  report.verdicts.push({
    what: `${name}: processor time, ours to the other's`,
    shown: `${show(median(costs))} × (${show(low)} to ${show(high)})`,
    target: `lower end ≤ ${MOST} ×`,
    met: low <= MOST,
  })
  if (most_cost) {
    const what = `${name}: the median of these`
    report.verdicts.push(atMost(what, median(costs), most_cost, "×"))
  }
  if (least_rate) {
    const rate = median(ratiosOf(pairs, ({ per_second }) => per_second))
    report.verdicts.push(atLeast(`${name}: rate, ours to the other's`, rate, least_rate))
  }
}

const ratiosOf = (pairs: Pair[], figure: (burst: Burst) => number): number[] =>
  pairs.map(({ ours, other }) => figure(ours) / figure(other)).sort((a, b) => a - b)
