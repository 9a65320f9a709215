import { join } from "node:path"
import { type Client, openClient } from "../lib/client"
import { NOBODY } from "../lib/profiles"
import { millis, pause } from "../lib/time"
import { firstLine, lastOf } from "./child-output"
import { ownCommand, scratchEnvironment } from "./own-binary"

const POLL_MILLISECONDS = 25

/** What `up --json` prints first. */
interface ReadyLine {
  url: string
  api_key: string
  data_dir: string
  smtp: { submission: number | null; inbound: number | null }
}

export interface SmokeOptions {
  /** The folder of this run. */
  scratch: string
  /** The time (of `millis`) when the whole run is over. */
  deadline: number
  /** More settings, as environment variables. */
  settings?: Record<string, string>
}

/** A server of this program in the scratch folder, on free ports of the loopback. */
export class SmokeServer {
  readonly ready: ReadyLine
  /** Calls the server as its first project. */
  readonly client: Client
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">
  readonly #options: SmokeOptions

  private constructor(
    ready: ReadyLine,
    child: Bun.Subprocess<"ignore", "pipe", "pipe">,
    options: SmokeOptions,
  ) {
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
    const child = Bun.spawn(ownCommand("up", "--json", "--port", "0", ...words), {
      ...surroundings(options),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    })
    const told = lastOf(child.stderr)
    const late = setTimeout(() => child.kill("SIGKILL"), Math.max(1, options.deadline - millis()))
    try {
      const line = await firstLine(child.stdout)
      if (line === undefined) {
        await child.exited
        throw new Error(`the server ended with ${child.exitCode ?? child.signalCode}: ${told()}`)
      }
      return new SmokeServer(JSON.parse(line) as ReadyLine, child, options)
    } finally {
      clearTimeout(late)
    }
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
      await this.wait(() => `the answer is still ${JSON.stringify(answer).slice(0, 300)}`)
    }
  }

  /** Pauses once, for a loop that waits. Throws at the deadline, with `what` in the message. */
  async wait(what: () => string): Promise<void> {
    if (millis() + POLL_MILLISECONDS > this.#options.deadline)
      throw new Error(`out of time: ${what()}`)
    await pause(POLL_MILLISECONDS)
  }

  /** Runs another command of this program against this server. Throws unless it ends with 0. */
  run(...words: string[]): Promise<string> {
    const { url, api_key } = this.ready
    return runOwn(words, this.#options, { BELFRY_URL: url, BELFRY_API_KEY: api_key })
  }

  /** Stops the server by SIGTERM, as a service manager does. Throws unless it ends with 0. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM")
    const late = setTimeout(() => this.kill(), Math.max(1, this.#options.deadline - millis()))
    await this.#child.exited
    clearTimeout(late)
    const { exitCode, signalCode } = this.#child
    if (exitCode !== 0) throw new Error(`the server ended with ${exitCode ?? signalCode}`)
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
  const around = surroundings(options)
  const child = Bun.spawn(ownCommand(...words), {
    ...around,
    env: { ...around.env, ...more },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: Math.max(1, options.deadline - millis()),
  })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (child.exitCode === 0) return out
  const said = (err || out).trim().slice(-500)
  throw new Error(
    `belfry ${words.slice(0, 2).join(" ")} ended with ${child.exitCode ?? child.signalCode}: ${said}`,
  )
}

const surroundings = ({ scratch, settings }: SmokeOptions) => ({
  cwd: scratch,
  env: { ...scratchEnvironment(join(scratch, "home")), ...settings },
})
