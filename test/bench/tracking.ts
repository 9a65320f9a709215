import { openSecrets } from "../../src/core/secrets"
import { openTokenOf, TOKEN_PURPOSE, tokenKeys } from "../../src/tracking/tracking-tokens"
import { readLines } from "../harness/lines"
import { atLeast, atMost, type Bench, median, ratioOf, requireEqual, series } from "./bench"
import { heldRelay } from "./held-relay"
import { oneMail } from "./mail"
import { residentMegabytes } from "./memory"
import { scratchFolder } from "./scratch"
import { databaseOf, initialise, type Serving, serve } from "./serving"
import { post } from "./wrk"

const CONNECTIONS = 8
const PIXELS_A_SECOND = 5_000
const MESSAGES = 1_000
const IN_BATCH = 100
const READY_MS = 30_000

/** Hits wait this long to be counted, and some more where there are many. */
const COUNTED_MS = 6_000

export const tracking: Bench = {
  name: "tracking",
  title: "1 KB posted over 8 connections while 5,000 pixels a second come from 100 addresses",

  async run({ rounds, seconds }) {
    const quiet = series("nobody else: p99", "ms")
    const during = series("with the pixels: p99", "ms")
    const rate = series("pictures that came", "1/s")
    const memory = series("memory above that of the warm server", "MB")
    for (let round = 0; round < rounds; round++) {
      using scratch = scratchFolder()
      using relay = heldRelay()
      const environment = { ...relay.environment, BELFRY_HTTP_TRUSTED_PROXIES: "127.0.0.1" }
      const key = await initialise(scratch.path, environment)
      const server = await serve(scratch.path, key, environment)
      const body = oneMail(scratch.path, relay.from)
      const target = { url: `${server.url}/v1/emails`, headers: server.headers }
      const send = () => post({ ...target, body, connections: CONNECTIONS, seconds })
      const paths = await pixels(server, scratch.path, relay.from)
      await send()
      quiet.values.push((await send()).p99_ms)
      const before = residentMegabytes(server.pid)
      const flood = await flooding(server, paths)
      during.values.push((await send()).p99_ms)
      memory.values.push(residentMegabytes(server.pid) - before)
      const { asked, loaded, seconds: lasted } = await flood.stop()
      requireEqual("pictures that came", asked, loaded)
      rate.values.push(loaded / lasted)
      await Bun.sleep(COUNTED_MS)
      await server.stop()
      requireEqual("hits that were counted", loaded, countedHits(scratch.path))
    }
    return {
      series: [quiet, during, rate, memory],
      verdicts: [
        atMost("p99 of the others", ratioOf(during, quiet), 2, "×"),
        atLeast("pictures that came", median(rate.values), 0.9 * PIXELS_A_SECOND, "/s"),
      ],
      notes: [
        "The pixels are those of 1,000 emails, each asked for in turn. Every hit is of a person, so each email makes events until it has 100 of them. At the end the counters hold every hit. Server and both loads share the two processors.",
      ],
    }
  },
}

/** Paths of the pixels of emails that were sent for it. */
async function pixels({ url, headers }: Serving, folder: string, from: string) {
  const { mac } = openSecrets({ data_dir: `${folder}/data`, master_key: null, make: false })
  const keys = tokenKeys(mac(TOKEN_PURPOSE, "v1"))
  const mail = {
    from,
    to: "user@mailbox.test",
    subject: "News",
    html: "<p>News</p>",
    track_opens: true,
  }
  const paths: string[] = []
  while (paths.length < MESSAGES) {
    const answer = await fetch(`${url}/v1/emails/batch`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(Array(IN_BATCH).fill(mail)),
    })
    const { data } = (await answer.json()) as { data: { id: string }[] }
    for (const { id } of data) paths.push(`/t/o/${openTokenOf(keys, id)}.gif`)
  }
  return paths
}

interface FloodResult {
  asked: number
  loaded: number
  seconds: number
}

async function flooding({ url }: Serving, paths: string[]) {
  const script = `${import.meta.dir}/pixel-flood.ts`
  const child = Bun.spawn({
    cmd: [process.execPath, script, new URL(url).port, String(PIXELS_A_SECOND)],
    stdin: Buffer.from(paths.join("\n")),
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  await lines.first((line) => line === "ready", READY_MS)
  return {
    async stop(): Promise<FloodResult> {
      child.kill("SIGTERM")
      const told = await lines.first((line) => line.startsWith("{"), READY_MS)
      await child.exited
      return JSON.parse(told) as FloodResult
    },
  }
}

function countedHits(folder: string): number {
  const database = databaseOf(folder)
  const sum = "SELECT coalesce(sum(open_total), 0) AS hits FROM message_tracking"
  const { hits } = database.query(sum).get() as { hits: number }
  database.close()
  return hits
}
