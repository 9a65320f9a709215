import type { Database } from "bun:sqlite"
import { copyFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { settings } from "../../src/core/config"
import { projects } from "../../src/identity/tables"
import { acceptNotes, newNote } from "../../src/inbox/accept"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { audience } from "../fan-out/audiences"
import { readLines } from "../harness/lines"
import { root } from "../harness/migrations"
import { atLeast, atMost, type Bench, median, ratioOf, series } from "./bench"
import { residentMegabytes } from "./memory"
import { nanosecondsOf } from "./processor"
import { type Scratch, scratchFolder } from "./scratch"
import { databaseOf, initialise, type Serving, serve } from "./serving"

const MEMBERS = 2000
const SOCKETS = 10_000
const MANY = 100_000
const FEW = 100
const READS = 400
/** Publishes before the one that is measured: what runs first is slow, here as there. */
const WARM_UP = 4
const READY_MS = 120_000
const PEER = "socket.io@4.8.4"
/** Each client has an address of its own, as behind a proxy. */
const CONNECTIONS = {
  BELFRY_HTTP_MAX_CONNECTIONS: "15000",
  BELFRY_HTTP_TRUSTED_PROXIES: "127.0.0.1",
}

const CONTENT = {
  title: "Maintenance on Sunday",
  body: "The service is not available from two to three o'clock. Nothing is lost, and mail waits.",
  action_url: "https://status.example.com/maintenance",
  action_label: "Show the plan",
}

export const inbox: Bench = {
  name: "inbox",
  title: `A publish to ${MEMBERS.toLocaleString("en")} inboxes with a socket each, beside socket.io`,

  async run({ rounds }) {
    const committed = series("ours: from the last commit to the last frame", "ms")
    const whole = series("ours: from the request to the last frame", "ms")
    const cpu = series("ours: processor time a message", "µs")
    const peer = series("peer: socket.io on Node, from the request to the last frame", "ms")
    const socket = series(`memory of a socket, ${SOCKETS.toLocaleString("en")} open`, "KB")
    const few = series(`list and unread-count of an inbox with ${FEW}, p99`, "ms")
    const many = series(`the same with ${MANY.toLocaleString("en")}`, "ms")
    using folder = installPeer()
    for (let round = 0; round < rounds; round++) {
      const ours = await publishOurs()
      committed.values.push(ours.committed_ms)
      whole.values.push(ours.whole_ms)
      cpu.values.push(ours.cpu_us)
      peer.values.push(await publishTheirs(folder))
    }
    for (let round = 0; round < Math.min(2, rounds); round++) {
      socket.values.push(await socketKilobytes())
      const read = await readInboxes()
      few.values.push(read.few_ms)
      many.values.push(read.many_ms)
    }
    return {
      series: [committed, whole, cpu, peer, socket, few, many],
      verdicts: [
        atLeast("as fast as socket.io from the commit on", ratioOf(peer, committed), 3),
        atLeast("as fast as socket.io from the request on", ratioOf(peer, whole), 0.4),
        atMost("memory of a socket", median(socket.values), 5, "KB"),
        atMost("reads of the large inbox, to the small one", ratioOf(many, few), 1.5, "×"),
      ],
      notes: [
        "Ours stores a message, its state, its change and its event for each member, and commits them, before their frames leave. The peer keeps nothing. Both write a frame of the message and one of the totals to each socket; one and the same client counts them.",
        "The last commit is the moment at which another connection to the database sees the message of the last member.",
      ],
    }
  },
}

interface Lane extends AsyncDisposable {
  /** The moment at which so many more messages had come to everybody. Call it before they are sent. */
  expect(count: number): Promise<{ last: Promise<number> }>
}

async function openLane(kind: "ours" | "socket.io", address: string, file: string): Promise<Lane> {
  const child = Bun.spawn({
    cmd: [process.execPath, join(root, "test/bench/inbox-lane.ts"), kind, address, file],
    env: { PATH: process.env.PATH ?? "" },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  let heard = 0
  const next = async () => {
    const place = heard++
    const deadline = performance.now() + READY_MS
    while (lines.all.length <= place) {
      if (performance.now() > deadline) throw new Error("the clients of an inbox say nothing")
      await Bun.sleep(1)
    }
    const line = lines.all[place] ?? ""
    if (line.startsWith("broken")) throw new Error(line)
    return line
  }
  await next()
  return {
    async expect(count) {
      child.stdin.write(`${count}\n`)
      child.stdin.flush()
      await next()
      return { last: next().then(Number) }
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

const wallClock = () => performance.timeOrigin + performance.now()

async function openBox({ path }: Scratch): Promise<Store> {
  const data_dir = join(path, "data")
  return openStore({
    ...settings(),
    ...{ data_dir, database_url: null, "storage.sqlite.path": null },
  })
}

/** A server with so many subscribers of one topic, and a token of each, in a file. */
async function filled(scratch: Scratch, members: number) {
  const key = await initialise(scratch.path)
  const store = await openBox(scratch)
  const [project] = await store.read.select().from(projects)
  const project_id = project?.id ?? ""
  const { ids } = await audience(
    store,
    { project_id },
    Array.from({ length: members }, () => ({})),
  )
  await store.close()
  const server = await serve(scratch.path, key, CONNECTIONS)
  const file = join(scratch.path, "tokens")
  writeFileSync(file, (await tokensOf(server, ids)).join("\n"))
  return { server, ids, file, project_id }
}

async function tokensOf({ url, headers }: Serving, ids: string[]): Promise<string[]> {
  const tokens: string[] = []
  let next = 0
  const lane = async () => {
    for (let at = next++; at < ids.length; at = next++) {
      const answer = await fetch(`${url}/v1/subscriber-inbox/token`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ subscriber_id: ids[at] }),
      })
      tokens[at] = ((await answer.json()) as { data: { token: string } }).data.token
    }
  }
  await Promise.all(Array.from({ length: 16 }, lane))
  return tokens
}

async function publishOurs() {
  using scratch = scratchFolder()
  const { server, ids, file } = await filled(scratch, MEMBERS)
  await using _ = server
  await using lane = await openLane("ours", server.url.replace("http", "ws"), file)
  const publish = () =>
    fetch(`${server.url}/v1/topics/releases/publish`, {
      method: "POST",
      headers: { ...server.headers, "content-type": "application/json" },
      body: JSON.stringify({ channels: ["in_app"], content: { in_app: CONTENT } }),
    })
  using database = databaseOf(scratch.path)
  for (let warm = 0; warm < WARM_UP; warm++) {
    const { last } = await lane.expect(1)
    await publish()
    await last
  }
  const watch = watchLast(database, ids.at(-1) ?? "", WARM_UP + 1)
  const { last } = await lane.expect(1)
  const used = nanosecondsOf(server.pid)
  const begun = wallClock()
  const answer = await publish()
  if (answer.status !== 201) throw new Error(`publish answered ${answer.status}`)
  const [ended, committed] = await Promise.all([last, watch])
  const cpu_us = (nanosecondsOf(server.pid) - used) / MEMBERS / 1000
  return { whole_ms: ended - begun, committed_ms: Math.max(0.1, ended - committed), cpu_us }
}

/** The moment at which the last member has so many changes, seen from outside. */
async function watchLast(database: Database, id: string, seq: number): Promise<number> {
  const bytes = Buffer.from(id.replaceAll("-", ""), "hex")
  const look = database.query<{ last_seq: number }, [Buffer]>(
    "SELECT last_seq FROM inboxes WHERE id = ?",
  )
  while ((look.get(bytes)?.last_seq ?? 0) < seq) await Bun.sleep(1)
  return wallClock()
}

function installPeer(): Scratch {
  const scratch = scratchFolder()
  writeFileSync(join(scratch.path, "package.json"), '{ "private": true }\n')
  copyFileSync(join(import.meta.dir, "socketio.mjs"), join(scratch.path, "socketio.mjs"))
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const made = Bun.spawnSync({
    cmd: ["npm", "install", ...flags, PEER],
    cwd: scratch.path,
    stdio: ["ignore", "ignore", "pipe"],
  })
  if (made.exitCode === 0) return scratch
  throw new Error(`the peer cannot be installed: ${made.stderr.toString()}`)
}

async function publishTheirs({ path }: Scratch): Promise<number> {
  const child = Bun.spawn({
    cmd: ["node", "socketio.mjs"],
    cwd: path,
    env: { PATH: process.env.PATH ?? "" },
    stdout: "pipe",
    stderr: "inherit",
  })
  try {
    const port = Number(await readLines(child.stdout).first(() => true, READY_MS))
    const file = join(path, "people")
    writeFileSync(file, Array.from({ length: MEMBERS }, () => crypto.randomUUID()).join("\n"))
    await using lane = await openLane("socket.io", `ws://127.0.0.1:${port}`, file)
    let taken = 0
    for (let publish = 0; publish <= WARM_UP; publish++) {
      const { last } = await lane.expect(1)
      const begun = wallClock()
      const body = JSON.stringify(CONTENT)
      await fetch(`http://127.0.0.1:${port}/publish`, { method: "POST", body })
      taken = (await last) - begun
    }
    return taken
  } finally {
    child.kill()
    await child.exited
  }
}

/** What the server's memory grows by for each of many sockets that are only open, over the first tenth of them. */
async function socketKilobytes(): Promise<number> {
  using scratch = scratchFolder()
  const { server, file } = await filled(scratch, SOCKETS)
  await using _ = server
  const address = server.url.replace("http", "ws")
  const tokens = (await Bun.file(file).text()).split("\n")
  const [first, others] = [join(scratch.path, "first"), join(scratch.path, "others")]
  const tenth = SOCKETS / 10
  writeFileSync(first, tokens.slice(0, tenth).join("\n"))
  writeFileSync(others, tokens.slice(tenth).join("\n"))
  await using some = await openLane("ours", address, first)
  await Bun.sleep(3000)
  const before = residentMegabytes(server.pid)
  await using all = await openLane("ours", address, others)
  await Bun.sleep(3000)
  void some
  void all
  return ((residentMegabytes(server.pid) - before) * 1000) / (SOCKETS - tenth)
}

/** The 99th percentile of reads of an inbox with few messages and of one with many, taken in turn. */
async function readInboxes() {
  using scratch = scratchFolder()
  const { server: first, ids, project_id } = await filled(scratch, 2)
  await first.stop()
  const store = await openBox(scratch)
  const [small = "", large = ""] = ids
  await fill(store, project_id, small, FEW)
  await fill(store, project_id, large, MANY)
  await store.close()
  const key = first.headers.Authorization?.replace("Bearer ", "") ?? ""
  await using server = await serve(scratch.path, key)
  const tokens = await tokensOf(server, ids)
  const taken: number[][] = [[], []]
  for (let read = 0; read < READS; read++) {
    for (const [at, token] of tokens.entries()) {
      const begun = performance.now()
      for (const path of ["", "/unread-count"]) {
        const answer = await fetch(`${server.url}/v1/subscriber-inbox${path}`, {
          headers: { authorization: `Bearer ${token}` },
        })
        if (answer.status !== 200) throw new Error(await answer.text())
        await answer.text()
      }
      if (read >= READS / 4) taken[at]?.push(performance.now() - begun)
    }
  }
  const [few_ms = 0, many_ms = 0] = taken.map((list) => p99(list))
  return { few_ms, many_ms }
}

const p99 = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.NaN

async function fill(store: Store, project_id: string, id: string, count: number) {
  const [project] = await store.read.select().from(projects)
  const account_id = project?.account_id ?? ""
  const content = {
    ...CONTENT,
    ...{ actions: [], icon: null, image_url: null, priority: "normal" as const, data: {} },
  }
  const message = () =>
    newNote({
      ...{ account_id, project_id, api_key_id: null, sandbox: false, stream: "transactional" },
      ...{ source: "api", category: null, template_id: null, tags: [], metadata: {}, envelope: {} },
      subscriber: { id, external_id: "reader" },
      note: { content, shared_id: null, collapse_key: null, expires_at: null },
    })
  for (let left = count; left > 0; left -= 500) {
    const entries = Array.from({ length: Math.min(500, left) }, () => ({
      message: message(),
      allowance: null,
    }))
    await store.tx((tx) => acceptNotes(tx, entries))
  }
}
