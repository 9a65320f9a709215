import type { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { statSync } from "node:fs"
import { rawSqlite } from "../../src/store/statements"
import { countingRelay } from "../fakes/counting-relay"
import { root } from "../harness/migrations"
import { quietLog } from "../harness/quiet"
import { serverHere } from "../harness/server-here"
import { until } from "../scenarios/mails"

quietLog()

/** Messages that are accepted together, and how often. */
const GROUP = 20
const GROUPS = 5

/**
 * The most for one message, from the request to the recorded outcome: rows written, transactions, bytes of the
 * write-ahead log, messages to other threads, and timers set in the main thread.
 */
const MOST = { rows: 8.8, commits: 0.3, log_bytes: 22_000, posts: 0.15, timers: 1.2 }

type Costs = typeof MOST

test("a delivered message costs so many rows, commits, bytes, hops and timers at most", async () => {
  using relay = countingRelay()
  await using server = await serverHere(relay.port)
  const { store } = server
  const writer = await store.tx(async (tx) => rawSqlite.get(tx) as Database)
  const numberOf = (query: string) => (writer.query(query).get() as { n: number }).n
  let sent = 0
  const sendGroup = async () => {
    await Promise.all(Array.from({ length: GROUP }, () => server.send()))
    sent += GROUP
    const recorded = "SELECT count(*) AS n FROM messages WHERE status = 'sent'"
    await until("all recorded", () => numberOf(recorded) === sent)
    const logged = "SELECT count(*) AS n FROM request_log"
    await until("all requests logged", () => numberOf(logged) === sent)
  }
  await sendGroup() // threads, connections and prepared statements are there afterwards

  await store.emptyLog()
  const changes = () => numberOf("SELECT total_changes() AS n")
  const before = { rows: changes(), commits: store.stats.commits }
  using calls = watchedCalls()
  for (let group = 0; group < GROUPS; group++) await sendGroup()
  const each = (count: number) => count / (GROUPS * GROUP)
  const costs: Costs = {
    rows: each(changes() - before.rows),
    commits: each(store.stats.commits - before.commits),
    log_bytes: each(statSync(server.log_path).size),
    posts: each(calls.posts),
    timers: each(calls.timers),
  }
  expect(tooHigh(costs)).toEqual({})
})

const tooHigh = (costs: Costs): Partial<Costs> =>
  Object.fromEntries(
    Object.entries(costs).filter(([name, value]) => value > MOST[name as keyof Costs]),
  )

/** Counts calls that the sources make: not those of the test or of libraries. */
function watchedCalls() {
  const undo: (() => void)[] = []
  const calls = {
    posts: 0,
    timers: 0,
    [Symbol.dispose]: () => {
      for (const act of undo) act()
    },
  }
  const watch = (owner: object, name: string, kind: "posts" | "timers") => {
    const original = Reflect.get(owner, name)
    Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
      const [, , caller = ""] = new Error().stack?.split("\n") ?? []
      if (caller.includes(`${root}/src/`)) calls[kind] += 1
      return original.apply(this, args)
    })
    undo.push(() => void Reflect.set(owner, name, original))
  }
  watch(Worker.prototype, "postMessage", "posts")
  for (const name of ["setTimeout", "setInterval", "setImmediate"])
    watch(globalThis, name, "timers")
  return calls
}
