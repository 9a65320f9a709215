import { join } from "node:path"
import { readLines } from "../harness/lines"

const READY_MS = 10_000

/** A sink in a process of its own that knows every message by its Message-ID. */
export interface RecordingSink extends AsyncDisposable {
  port: number
  messages(): number
  /** Messages, each counted once. */
  different(): number
  has(different: number): Promise<void>
  /** Different messages a second, over so many seconds from now. */
  rate(seconds: number): Promise<number>
}

export async function recordingSink(): Promise<RecordingSink> {
  const script = join(import.meta.dir, "recording-sink.ts")
  const child = Bun.spawn({ cmd: [process.execPath, script], stdout: "pipe", stderr: "inherit" })
  const lines = readLines(child.stdout)
  const port = Number(await lines.first(() => true, READY_MS))
  const last = () => (lines.all.at(-1) ?? "").split(" ").map(Number)
  return {
    port,
    messages: () => last()[0] ?? 0,
    different: () => last()[1] ?? 0,
    async has(wanted) {
      let moved = performance.now()
      let known = 0
      while ((last()[1] ?? 0) < wanted) {
        await Bun.sleep(50)
        const count = last()[1] ?? 0
        if (count !== known) moved = performance.now()
        known = count
        // After a kill the leases of what was under way end with the next start.
        if (performance.now() - moved > 60_000) throw new Error(`${known} of ${wanted} came`)
      }
    },
    async rate(seconds) {
      const before = last()[1] ?? 0
      await Bun.sleep(seconds * 1000)
      return ((last()[1] ?? 0) - before) / seconds
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
