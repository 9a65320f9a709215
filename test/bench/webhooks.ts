import { copyFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { readLines } from "../harness/lines"
import { freePort } from "../harness/ports"
import { atLeast, atMost, type Bench, median, ratioOf, requireEqual, series, show } from "./bench"
import { scratchFolder } from "./scratch"

/** As released at the time of writing; their own newest dependencies may not resolve everywhere. */
const PEERS = ["bullmq@6.7.0", "undici@7.30.2", "ioredis@5"]
const NOT_NEWER = "--before=2026-03-01"

const PEER = "peer: BullMQ worker with undici, capture stored"

const ENDPOINTS = 64
const STEADY_PER_SECOND = 500
const HANGING_ENDPOINTS = 99
const READY_MS = 15_000

/** Enough for some seconds each. */
const deliveries_of = { bare: 100_000, ours: 25_600, peer: 8_000 }

export const webhooks: Bench = {
  name: "webhooks",
  title: "webhook deliveries, signed, attempt and capture stored, 64 endpoints",

  async run({ rounds, seconds }) {
    using peer = installPeers()
    await using hasty = await startRedis(peer.path, "everysec")
    await using durable = await startRedis(peer.path, "always")
    await using receiver = await startReceiver()
    const share = Math.min(1, seconds / 5)
    const size = (who: keyof typeof deliveries_of) => Math.round(deliveries_of[who] * share)

    const bare = series("limit: bare `fetch` with an HMAC, nothing stored", "/s")
    const ours = series("ours: SQLite, every attempt on disk", "/s")
    const always = series(`${PEER}, Redis syncs before it answers`, "/s")
    const each_second = series(`${PEER}, Redis syncs each second`, "/s")
    const p50 = series(`ours at ${STEADY_PER_SECOND}/s: commit to POST, p50`, "ms")
    const p99 = series(`ours at ${STEADY_PER_SECOND}/s: commit to POST, p99`, "ms")
    const healthy = series(`99 endpoints at ${STEADY_PER_SECOND}/s: p99`, "ms")
    const beside = series("the same beside one that hangs: p99", "ms")
    for (let round = 0; round < rounds; round++) {
      bare.values.push(await bareRuns(receiver, size("bare")))
      ours.values.push(await oursRuns(receiver, size("ours")))
      each_second.values.push(await peerRuns(peer.path, hasty.port, receiver, size("peer")))
      always.values.push(await peerRuns(peer.path, durable.port, receiver, size("peer")))
      const steady = await latencies(receiver, ENDPOINTS, seconds, 0)
      p50.values.push(steady.p50)
      p99.values.push(steady.p99)
      healthy.values.push((await latencies(receiver, HANGING_ENDPOINTS, seconds, 0)).p99)
      beside.values.push((await latencies(receiver, HANGING_ENDPOINTS, seconds, 1)).p99)
    }
    const moved = ratioOf(beside, healthy)
    return {
      series: [bare, ours, always, each_second, p50, p99, healthy, beside],
      verdicts: [
        atLeast("ours to bare `fetch`", ratioOf(ours, bare), 0.25),
        atLeast("ours to BullMQ with undici, as durable", ratioOf(ours, always), 4),
        atMost("commit to POST, p50", median(p50.values), 5, "ms"),
        atMost("commit to POST, p99", median(p99.values), 25, "ms"),
        atMost("one hanging endpoint of 100 moves the others' p99", moved, 1.5, "×"),
      ],
      notes: [
        `The peer keeps the same of each attempt: headers of both sides, body, log. Where it may lose the last second, ours is ${show(ratioOf(ours, each_second))} × as fast.`,
        "Bursts are planned before the clock starts, which stops when no delivery is open; then as many rows hold the captured answer as deliveries arrived, each with a signature. SQLite with synchronous=FULL; the end of each delivery is on disk, the claim in memory.",
        "At a steady rate each event is for one endpoint; the clock starts when the commit is acknowledged and stops in the receiver, which is another process on the same machine.",
      ],
    }
  },
}

function installPeers() {
  const scratch = scratchFolder()
  writeFileSync(join(scratch.path, "package.json"), '{ "private": true }\n')
  copyFileSync(join(import.meta.dir, "bullmq.mjs"), join(scratch.path, "bullmq.mjs"))
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const install = (...more: string[]) =>
    Bun.spawnSync({
      cmd: ["npm", "install", ...flags, ...more],
      cwd: scratch.path,
      stdio: ["ignore", "ignore", "pipe"],
    })
  const first = install(...PEERS)
  const made =
    first.exitCode === 0 ? first : install("bullmq@5", "undici@7", "ioredis@5", NOT_NEWER)
  if (made.exitCode === 0) return scratch
  scratch[Symbol.dispose]()
  throw new Error(`the peers cannot be installed: ${made.stderr.toString()}`)
}

async function startRedis(folder: string, sync: "everysec" | "always") {
  const program = Bun.which("redis-server")
  if (!program) throw new Error("needs redis-server (apt-get install redis-server)")
  const port = await freePort()
  const own = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder]
  own.push("--appenddirname", `appended-${sync}`)
  const durable = ["--save", "", "--appendonly", "yes", "--appendfsync", sync]
  const child = Bun.spawn({ cmd: [program, ...own, ...durable], stdout: "pipe", stderr: "inherit" })
  await readLines(child.stdout).first((line) => line.includes("Ready to accept"), READY_MS)
  return { port, [Symbol.asyncDispose]: () => end(child) }
}

/** The receiver of webhooks, a process of its own. */
export async function startReceiver() {
  const script = join(import.meta.dir, "hook-receiver.ts")
  const child = Bun.spawn({ cmd: [process.execPath, script], stdout: "pipe", stderr: "inherit" })
  const port = Number(await readLines(child.stdout).first(() => true, READY_MS))
  return { port, [Symbol.asyncDispose]: () => end(child) }
}

async function end(child: { kill(): void; exited: Promise<number> }) {
  child.kill()
  await child.exited
}

interface Receiver {
  port: number
}

/** What arrived since the last time: by path and event, when. */
export async function arrivals({ port }: Receiver): Promise<Map<string, number>> {
  const response = await fetch(`http://127.0.0.1:${port}/stats`)
  const told = (await response.json()) as {
    arrivals: { key: string; at: number }[]
    signed: number
  }
  requireEqual("signed deliveries", told.arrivals.length, told.signed)
  const by_key = new Map(told.arrivals.map(({ key, at }) => [key, at]))
  requireEqual("different deliveries", told.arrivals.length, by_key.size)
  return by_key
}

/** Bare POSTs of a text of so many characters, each with an HMAC. How many a second. */
export async function bareRuns(
  receiver: Receiver,
  wanted: number,
  characters = 300,
): Promise<number> {
  const cmd = [process.execPath, join(import.meta.dir, "bare-hooks.ts")]
  const args = [receiver.port, ENDPOINTS, wanted, characters]
  const told = await measured([...cmd, ...args], process.cwd())
  requireEqual("bare deliveries", wanted, (await arrivals(receiver)).size)
  return told.per_second
}

async function oursRuns(receiver: Receiver, wanted: number): Promise<number> {
  using scratch = scratchFolder()
  const told = await measured([...lanes, "burst", receiver.port, ENDPOINTS, wanted], scratch.path)
  requireEqual("deliveries stored", (await arrivals(receiver)).size, told.stored)
  return told.per_second
}

async function peerRuns(folder: string, redis: number, receiver: Receiver, wanted: number) {
  const told = await measured(
    ["node", "bullmq.mjs", redis, receiver.port, ENDPOINTS, wanted],
    folder,
  )
  requireEqual("the peer's deliveries", wanted, (await arrivals(receiver)).size)
  return told.per_second
}

async function latencies(receiver: Receiver, endpoints: number, seconds: number, hanging: number) {
  using scratch = scratchFolder()
  const way = ["steady", receiver.port, endpoints, STEADY_PER_SECOND, seconds, hanging]
  const { committed } = await measured([...lanes, ...way], scratch.path)
  const arrived = await arrivals(receiver)
  requireEqual("deliveries of committed events", committed.length, arrived.size)
  const waits = committed.map(([key, at]) => Math.max(0, (arrived.get(key) ?? Number.NaN) - at))
  const sorted = waits.sort((a, b) => a - b)
  const part = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  return { p50: part(0.5), p99: part(0.99) }
}

const lanes = [process.execPath, join(import.meta.dir, "hook-lanes.ts")]

interface Told {
  per_second: number
  stored: number
  committed: [string, number][]
}

async function measured(command: (string | number)[], cwd: string): Promise<Told> {
  const child = Bun.spawn({
    cmd: command.map(String),
    cwd,
    env: {
      PATH: process.env.PATH ?? "",
      BELFRY_DATA_DIR: cwd,
      BELFRY_LOG_LEVEL: "error",
    },
    stdout: "pipe",
    stderr: "pipe",
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) {
    throw new Error(`${command.join(" ")} failed: ${await child.stderr.text()}`)
  }
  return JSON.parse(text) as Told
}
