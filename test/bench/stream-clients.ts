import { join } from "node:path"
import { readLines } from "../harness/lines"
import { root } from "../harness/migrations"
import type { Serving } from "./serving"

const WAIT_MS = 60_000

/** Clients of `/v1/events/stream` that hear everything, in a process of their own. */
export class StreamClients implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "inherit">
  readonly #lines: ReturnType<typeof readLines>

  private constructor(child: Bun.Subprocess<"pipe", "pipe", "inherit">) {
    this.#child = child
    this.#lines = readLines(child.stdout)
  }

  /** Resolves when all of them are connected. */
  static async open({ url, headers }: Serving, count: number): Promise<StreamClients> {
    const clients = new StreamClients(
      Bun.spawn({
        cmd: [process.execPath, join(root, "test/bench/stream-lane.ts"), url, String(count)],
        env: { PATH: process.env.PATH ?? "", AUTHORIZATION: headers.Authorization ?? "" },
        stdin: "pipe",
        stdout: "pipe",
        stderr: "inherit",
      }),
    )
    await clients.#lines.first((line) => line === "open", WAIT_MS)
    return clients
  }

  /** Rejects unless each of them has heard each event once and in order. */
  async requireAll(): Promise<void> {
    this.#child.stdin.write("end\n")
    this.#child.stdin.flush()
    const line = await this.#lines.first((text) => /^(complete|broken)/.test(text), WAIT_MS)
    if (line !== "complete") throw new Error(`clients of the stream: ${line}`)
  }

  async [Symbol.asyncDispose]() {
    this.#child.kill()
    await this.#child.exited
  }
}
