import { readFileSync } from "node:fs"
import { readLines } from "../harness/lines"
import { atMost, type Bench, median, series } from "./bench"
import type { FloodKind } from "./flood-kinds"
import { heldRelay } from "./held-relay"
import { oneMail } from "./mail"
import { MEGABYTE, residentMegabytes } from "./memory"
import { scratchFolder } from "./scratch"
import { initialise, type Serving, serve } from "./serving"
import { post } from "./wrk"

const CONNECTIONS = 8
const BODIES_AT_ONCE = 16
const READY_MS = 60_000

export const bodies: Bench = {
  name: "bodies",
  title: "1 KB posted over 8 connections while bodies of 30 MiB come, 16 at once",

  async run({ rounds, seconds }) {
    const quiet = series("nobody else: p99", "ms")
    const during = { lists: flooded("`[[],[],…]`"), text: flooded("one long text") }
    for (let round = 0; round < rounds; round++) {
      using scratch = scratchFolder()
      using relay = heldRelay()
      const key = await initialise(scratch.path, relay.environment)
      const ask = async (flood?: FloodKind) => {
        await using server = await serve(scratch.path, key, relay.environment)
        const body = oneMail(scratch.path, relay.from)
        const send = () => post({ ...target(server), body, connections: CONNECTIONS, seconds })
        const warm = await send()
        if (!flood) return { answers: warm, memory: 0 }
        const before = residentMegabytes(server.pid)
        await using _ = await flooding(server, key, flood)
        const answers = await send()
        return { answers, memory: peakMegabytes(server.pid) - before }
      }
      quiet.values.push((await ask()).answers.p99_ms)
      for (const kind of ["lists", "text"] as const) {
        const { answers, memory } = await ask(kind)
        during[kind].p99.values.push(answers.p99_ms)
        during[kind].memory.values.push(memory)
      }
    }
    const { lists, text } = during
    return {
      series: [quiet, lists.p99, lists.memory, text.p99, text.memory],
      verdicts: [
        atMost("lists: p99 of the others", median(lists.p99.values), 50, "ms"),
        atMost("lists: memory", median(lists.memory.values), 150, "MB"),
        atMost("one long text: p99 of the others", median(text.p99.values), 50, "ms"),
        atMost("one long text: memory", median(text.memory.values), 150, "MB"),
      ],
      notes: [
        "All 16 come at once, to `/v1/emails/batch` of one project, and again half a second after the last answer. Lists are refused with 400 when 100,000 values have come. Of the texts one fits at a time; it is refused with 413, since no message may be so large. The others are refused with 503.",
        "Memory is the most the process ever had, over what it had before, when it was warm. Sender, server and load share the two processors.",
      ],
    }
  },
}

const flooded = (kind: string) => ({
  p99: series(`${kind}: p99 of the others`, "ms"),
  memory: series(`${kind}: memory above that of the warm server`, "MB"),
})

const target = ({ url, headers }: Serving) => ({ url: `${url}/v1/emails`, headers })

function peakMegabytes(pid: number): number {
  const [, kibibytes] =
    /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
  return (Number(kibibytes ?? Number.NaN) * 1024) / MEGABYTE
}

/** Sends them until its end. Rejects there when nothing was answered, or something with success. */
async function flooding({ url }: Serving, key: string, kind: FloodKind): Promise<AsyncDisposable> {
  const script = `${import.meta.dir}/body-flood.ts`
  const words = [new URL(url).port, key, String(BODIES_AT_ONCE), kind]
  const child = Bun.spawn({
    cmd: [process.execPath, script, ...words],
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  await lines.first((line) => line === "ready", READY_MS)
  return {
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM")
      const told = await lines.first((line) => line.startsWith("{"), READY_MS)
      await child.exited
      const statuses = Object.keys(JSON.parse(told))
      if (statuses.some((status) => !["400", "413", "503"].includes(status))) {
        throw new Error(`the bodies were answered with ${told}`)
      }
      if (process.env.BENCH_VERBOSE) console.log(told)
    },
  }
}
