import { join } from "node:path"
import { type Client, openClient } from "../lib/client"
import { NOBODY } from "../lib/profiles"
import { millis, pause } from "../lib/time"
import { ownCommand, scratchEnvironment } from "./own-binary"

const POLL_MILLISECONDS = 25

/** What `up --json` prints first. */
interface ReadyLine {
  url: string
  api_key: string
  smtp: { submission: number | null; inbound: number | null }
}

export interface SmokeOptions {
  /** The folder of this run. */
  scratch: string
  /** The time (of `millis`) when the whole run is over. What still runs then is killed. */
  deadline: number
  /** More settings, as environment variables. */
  settings: Record<string, string>
}

/** A server of this program in the scratch folder, on free ports of the loopback. */
export class SmokeServer {
  readonly ready: ReadyLine
  /** Calls the server as its first project. */
  readonly client: Client
  readonly #child: ReturnType<typeof spawnOwn>
  readonly #options: SmokeOptions

  private constructor(ready: ReadyLine, child: ReturnType<typeof spawnOwn>, options: SmokeOptions) {
    const { url, api_key } = ready
    const timeout = Math.max(1, options.deadline - millis())
    this.ready = ready
    this.client = openClient({ ...NOBODY, url, api_key }, { timeout, dry_run: false })
    this.#child = child
    this.#options = options
  }

  /**
   * Starts `belfry up` and waits for its first line. When the server ends before that, throws the end of
   * its log.
   */
  static async start(words: string[], options: SmokeOptions): Promise<SmokeServer> {
    const child = spawnOwn(["up", "--json", "--port", "0", ...words], options)
    const told = lastOf(child.stderr)
    const line = await firstLine(child.stdout)
    if (line !== undefined) return new SmokeServer(JSON.parse(line) as ReadyLine, child, options)
    await child.exited
    throw new Error(`the server ended with ${endOf(child)}: ${told()}`)
  }

  /** Asks again until `wanted` finds something. Throws at the deadline, with the last answer. */
  async until<Answer, Found>(
    ask: (client: Client) => Promise<Answer>,
    wanted: (answer: Answer) => Found | undefined,
  ): Promise<Found> {
    for (;;) {
      const answer = await ask(this.client)
      const found = wanted(answer)
      if (found !== undefined) return found
      if (millis() + POLL_MILLISECONDS > this.#options.deadline) {
        const text = JSON.stringify(answer).slice(0, 300)
        throw new Error(`out of time: the answer is still ${text}`)
      }
      await pause(POLL_MILLISECONDS)
    }
  }

  /** Runs another command of this program against this server. Throws unless it ends with 0. */
  run(...words: string[]): Promise<string> {
    const { url, api_key } = this.ready
    return runOwn(words, this.#options, { BELFRY_URL: url, BELFRY_API_KEY: api_key })
  }

  /** Stops the server by SIGTERM, as a service manager does. Throws unless it ends with 0. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM")
    await this.#child.exited
    if (this.#child.exitCode !== 0) throw new Error(`the server ended with ${endOf(this.#child)}`)
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }
}

/** Runs a command of this program in the scratch folder. Throws unless it ends with 0. */
export async function runOwn(
  words: string[],
  options: SmokeOptions,
  more: Record<string, string> = {},
): Promise<string> {
  const child = spawnOwn(words, options, more)
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (child.exitCode === 0) return out
  const said = (err || out).trim().slice(-500)
  throw new Error(`belfry ${words.slice(0, 2).join(" ")} ended with ${endOf(child)}: ${said}`)
}

const spawnOwn = (
  words: string[],
  { scratch, settings, deadline }: SmokeOptions,
  more: Record<string, string> = {},
) =>
  Bun.spawn(ownCommand(...words), {
    cwd: scratch,
    env: { ...scratchEnvironment(join(scratch, "home")), ...settings, ...more },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: Math.max(1, deadline - millis()),
    killSignal: "SIGKILL",
  })

const endOf = ({ exitCode, signalCode }: Bun.Subprocess) => String(exitCode ?? signalCode)

const KEPT_CHARACTERS = 4000

/**
 * The first line that a process prints, without its end; undefined where it ends before. The rest is read
 * and forgotten: a pipe that is full would stop the process.
 */
async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ""
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return undefined
    text += decoder.decode(value, { stream: true })
    const end = text.indexOf("\n")
    if (end < 0) continue
    void drain(reader)
    return text.slice(0, end)
  }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

/** Reads what a process prints to its end. Answers how to ask for the last of it. */
function lastOf(stream: ReadableStream<Uint8Array>): () => string {
  let text = ""
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const part of stream)
      text = (text + decoder.decode(part, { stream: true })).slice(-KEPT_CHARACTERS)
  }
  void read()
  return () => text.trim()
}
