import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { readLines } from "../harness/lines"
import { becomeOwner } from "../scenarios/page-owner"
import { atMost, type Bench, type Effort, median, type Series, series, type Verdict } from "./bench"
import { manyMails, oneMail, textOf } from "./mail"
import { residentMegabytes } from "./memory"
import { type Scratch, scratchFolder } from "./scratch"
import { type Serving, serve } from "./serving"

const FROM = "shop@mailbox.test"
const LARGE_BYTES = 8_700_000
const READY_MS = 60_000
/** Of the neighbour: one send each so many milliseconds, however long the one before takes. */
const PACE_MS = 20
const SETTLED_MS = 60_000
/** After a flood, before the neighbour is measured alone again. */
const QUIET_MS = 2000
const MOST_TIMES = 2
const OR_AT_MOST_MS = 50
const MOST_KEPT_MB = 100

interface Flood {
  path: string
  connections: number
  body: (folder: string) => string
}

const FLOODS: Record<string, Flood> = {
  "batches of 100 on 6 connections": {
    path: "/v1/emails/batch",
    connections: 6,
    body: (folder) => manyMails(folder, FROM, 100),
  },
  "html of 8.7 MB on 3 connections": {
    path: "/v1/emails",
    connections: 3,
    body: (folder) => large(folder, { html: textOf(LARGE_BYTES) }),
  },
  "attachments of 8.7 MB on 3 connections": {
    path: "/v1/emails",
    connections: 3,
    body: (folder) => large(folder, { text: "See the file.", attachments: [file()] }),
  },
}

export const fairness: Bench = {
  name: "fairness",
  title: "`POST /v1/emails` of 1 KB, 50 a second, of one project while another one floods",

  async run(effort) {
    const all: Series[] = []
    const verdicts: Verdict[] = []
    for (const [kind, flood] of Object.entries(FLOODS)) {
      const told = await beside(flood, effort)
      for (const one of Object.values(told)) all.push({ ...one, name: `${kind}: ${one.name}` })
      const limit = Math.max(OR_AT_MOST_MS, MOST_TIMES * median(told.alone_p99.values))
      const p99 = median(told.p99.values)
      verdicts.push(atMost(`${kind}: p99 of the neighbour`, p99, Math.round(limit), "ms"))
      const kept = median(told.after.values) - median(told.before.values)
      verdicts.push(atMost(`${kind}: memory kept after 60 s`, kept, MOST_KEPT_MB, "MB"))
    }
    return {
      series: all,
      verdicts,
      notes: [
        "Each round measures the neighbour alone and then beside the flood, on the same warm server. A send is timed from the moment it was due. Mail goes to the embedded mailbox, so that what was accepted is also composed and delivered meanwhile. The target is twice the p99 alone, or 50 ms.",
      ],
    }
  },
}

/** Memory is that of the server: before the first flood, at most, and a minute after the last one. */
async function beside(flood: Flood, { rounds, seconds }: Effort) {
  const told = {
    alone_p50: series("alone, p50", "ms"),
    alone_p99: series("alone, p99", "ms"),
    p50: series("p50", "ms"),
    p99: series("p99", "ms"),
    rate: series("its answers with success", "/s"),
    before: series("memory before", "MB"),
    peak: series("memory at most", "MB"),
    after: series("memory after 60 s", "MB"),
  }
  using scratch = scratchFolder()
  await using server = await serve(scratch.path, "")
  const keys = await twoProjects(server, scratch)
  const body = readFileSync(oneMail(scratch.path, FROM))
  const neighbour = () => measure(server, keys.neighbour, body, seconds)
  await neighbour() // warm
  told.before.values.push(residentMegabytes(server.pid))
  for (let round = 0; round < rounds; round++) {
    const alone = await neighbour()
    const watch = watched(server.pid)
    const running = await flooding(server, keys.flood, flood, scratch)
    const meanwhile = await neighbour()
    told.rate.values.push((await running.end()) / seconds)
    told.peak.values.push(watch())
    told.alone_p50.values.push(alone.p50)
    told.alone_p99.values.push(alone.p99)
    told.p50.values.push(meanwhile.p50)
    told.p99.values.push(meanwhile.p99)
    await Bun.sleep(QUIET_MS)
  }
  await Bun.sleep(SETTLED_MS)
  told.after.values.push(residentMegabytes(server.pid))
  return told
}

function large(folder: string, content: object): string {
  const path = join(folder, "large.json")
  const mail = { from: FROM, to: "user@mailbox.test", subject: "Large", ...content }
  writeFileSync(path, JSON.stringify(mail))
  return path
}

/** So many bytes in base64 on the wire. */
function file() {
  const bytes = crypto.getRandomValues(new Uint8Array(65_536))
  const all = Buffer.concat(Array.from({ length: 100 }, () => bytes))
  const content = all.toString("base64").slice(0, LARGE_BYTES - (LARGE_BYTES % 4))
  return { filename: "report.bin", content_type: "application/octet-stream", content }
}

/** Keys of the project that floods, and of its neighbour. */
export async function twoProjects(server: Serving, { path }: Scratch) {
  const token = readFileSync(join(path, "data", "setup-token"), "utf8").trim()
  const owner = await becomeOwner(server, token)
  const { key } = await owner.makeProject("Neighbour")
  return { flood: owner.made.api_key.key, neighbour: key }
}

/** One send at an even pace after the other, in ms. */
export async function measure({ url }: Serving, key: string, body: Uint8Array, seconds: number) {
  const headers = { "x-api-key": key, "content-type": "application/json" }
  const took: number[] = []
  const once = async (due: number) => {
    const own = { ...headers, "idempotency-key": crypto.randomUUID() }
    const answer = await fetch(`${url}/v1/emails`, { method: "POST", headers: own, body })
    const text = await answer.text()
    if (answer.status !== 201)
      throw new Error(`the neighbour was answered ${answer.status}: ${text}`)
    took.push(performance.now() - due)
  }
  const begun = performance.now()
  const sent: Promise<void>[] = []
  for (let due = begun; due < begun + seconds * 1000; due += PACE_MS) {
    await Bun.sleep(Math.max(0, due - performance.now()))
    sent.push(once(Math.max(due, begun)))
  }
  await Promise.all(sent)
  took.sort((a, b) => a - b)
  const at = (share: number) => took[Math.floor(share * (took.length - 1))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}

/** Returns how to end it and hear the most memory that was seen. */
function watched(pid: number) {
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, residentMegabytes(pid))
  }, 100)
  return () => {
    clearInterval(timer)
    return most
  }
}

async function flooding({ url }: Serving, key: string, flood: Flood, { path }: Scratch) {
  const script = `${import.meta.dir}/fair-flood.ts`
  const words = [`${url}${flood.path}`, key, String(flood.connections), flood.body(path)]
  const child = Bun.spawn({
    cmd: [process.execPath, script, ...words],
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  await lines.first((line) => line === "ready", READY_MS)
  return {
    /** How many of its sends were accepted. */
    async end(): Promise<number> {
      child.kill("SIGTERM")
      const told = await lines.first((line) => line.startsWith("{"), READY_MS)
      await child.exited
      if (process.env.BENCH_VERBOSE) console.log(told)
      const statuses = JSON.parse(told) as Record<string, number>
      return (statuses["200"] ?? 0) + (statuses["201"] ?? 0)
    },
  }
}
