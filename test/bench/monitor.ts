import { readFileSync } from "node:fs"
import { binary } from "../harness/binary"
import { atMost, type Bench, median, requireEqual, series } from "./bench"
import { residentMegabytes } from "./memory"
import { scratchFolder } from "./scratch"
import { initialise, type Serving, serve } from "./serving"

const RATE = 500
const AT_ONCE = 50
const FULL_SECONDS = 60
const QUICK_SECONDS = 10
const WARM_MS = 3000
const TICKS_PER_SECOND = 100

/** Ink begins every redraw with it, so that the terminal shows it as a whole. */
const REDRAW = "\u001b[?2026h"

export const monitor: Bench = {
  name: "tui",
  title: `\`belfry tui\` on 160 × 48 while ${RATE} messages a second pass`,

  async run({ rounds }) {
    const seconds = rounds > 2 ? FULL_SECONDS : QUICK_SECONDS
    using scratch = scratchFolder()
    const key = await initialise(scratch.path)
    await using server = await serve(scratch.path, key)
    const screen = watch(scratch.path, server.url, key)
    const cpu = series("processor, of one core, each second", "%")
    const memory = series("resident memory, each second", "MB")
    const redraws = series("redraws, each second", "/s")
    try {
      await Bun.sleep(WARM_MS)
      const sending = send(server, seconds)
      let before = ticksOf(screen.pid)
      screen.redraws()
      for (let second = 0; second < seconds; second++) {
        const begun = performance.now()
        await Bun.sleep(1000)
        const took = (performance.now() - begun) / 1000
        const now = ticksOf(screen.pid)
        cpu.values.push((100 * (now - before)) / TICKS_PER_SECOND / took)
        memory.values.push(residentMegabytes(screen.pid))
        redraws.values.push(screen.redraws() / took)
        before = now
      }
      requireEqual("messages that were accepted", seconds * RATE, await sending)
    } finally {
      await screen.end()
    }
    const most_redraws = Math.max(...redraws.values)
    return {
      series: [cpu, memory, redraws],
      verdicts: [
        atMost("processor, of one core", mean(cpu.values), 25, "%"),
        atMost("memory, the median", median(memory.values), 150, "MB"),
        atMost("memory, the highest", Math.max(...memory.values), 150, "MB"),
        atMost("redraws, the most in a second", most_redraws, 11, "/s"),
      ],
      notes: [
        `Over ${seconds} s; each message is told by three events and four changes of its status. Server and sender run on the same cores.`,
      ],
    }
  },
}

const mean = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / values.length

/** The monitor on a terminal that only counts. */
function watch(folder: string, url: string, key: string) {
  const decoder = new TextDecoder()
  let count = 0
  const child = Bun.spawn({
    cmd: [binary, "tui"],
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? "/usr/bin:/bin",
      HOME: folder,
      TERM: "xterm-256color",
      BELFRY_URL: url,
      BELFRY_API_KEY: key,
    },
    terminal: {
      cols: 160,
      rows: 48,
      data(_, bytes) {
        count += decoder.decode(bytes, { stream: true }).split(REDRAW).length - 1
      },
    },
  })
  return {
    pid: child.pid,
    /** Since it was last asked. */
    redraws() {
      const found = count
      count = 0
      return found
    },
    async end() {
      child.kill("SIGTERM")
      await child.exited
    },
  }
}

/** Sends at an even pace; resolves to how many were accepted. */
async function send({ url, headers }: Serving, seconds: number): Promise<number> {
  const begun = performance.now()
  let accepted = 0
  for (let number = 0; number < seconds * RATE; number += AT_ONCE) {
    const due = begun + (number / RATE) * 1000
    await Bun.sleep(Math.max(0, due - performance.now()))
    const messages = Array.from({ length: AT_ONCE }, (_, at) => ({
      to: `u${number + at}@mailbox.test`,
      from: "me@mailbox.test",
      subject: `Your receipt number ${number + at}`,
      text: "Thank you.",
      tags: ["billing"],
    }))
    const response = await fetch(`${url}/v1/emails/batch`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ messages }),
    })
    const { data } = (await response.json()) as { data: { succeeded: number } }
    accepted += data.succeeded
  }
  return accepted
}

/** Of the processor, as Linux counts them: a hundred a second. */
function ticksOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return Number(fields[11]) + Number(fields[12])
}
