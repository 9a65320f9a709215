import { userInfo } from "node:os"
import { locate } from "../harness/peers"
import { freePort } from "../harness/ports"

/** Longer than anybody needs between two messages; a retry of ours comes after a minute. */
const SILENCE_MS = 30_000

/** Postfix's own sink: it takes every message, answers, and counts. */
export interface Sink extends AsyncDisposable {
  port: number
  /** Messages that came so far, each answered with 250. */
  messages(): number
  /** Resolves when so many came, with the moment of the last one; rejects when none came for a while. */
  received(messages: number): Promise<number>
}

export async function countingSink(): Promise<Sink> {
  const port = await freePort()
  const program = locate("smtp-sink") ?? "smtp-sink"
  const user = userInfo().uid === 0 ? ["-u", "nobody"] : [] // it refuses to run as root
  const child = Bun.spawn({
    cmd: [program, "-c", ...user, `127.0.0.1:${port}`, "1000"],
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  })
  let count = 0
  let moved = performance.now()
  let told: () => void = () => {}
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const bytes of child.stdout) {
      const found = [...decoder.decode(bytes).matchAll(/mesg=(\d+)\s/g)].at(-1)
      if (!found) continue
      count = Number(found[1])
      moved = performance.now()
      told()
    }
  }
  void read()
  return {
    port,
    messages: () => count,
    async received(messages) {
      if (count < messages) moved = performance.now() // the silence begins with the question
      while (count < messages) {
        const { promise, resolve } = Promise.withResolvers<void>()
        told = resolve
        const timer = setTimeout(resolve, 1000)
        await promise
        clearTimeout(timer)
        if (performance.now() - moved > SILENCE_MS) throw new Error(`${count} of ${messages} came`)
      }
      return moved
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
