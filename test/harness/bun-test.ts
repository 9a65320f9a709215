import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Subprocess } from "bun"
import type { Group } from "./groups"
import { readJunit, type Totals } from "./junit"
import { root } from "./migrations"

export interface Surroundings {
  env: Record<string, string>
  /** For its report, and for what it says. */
  scratch: string
  /** Whether it says what it does as it does it, or only keeps it. */
  aloud: boolean
  onStart(child: Subprocess): void
}

export interface Ended {
  code: number
  signal: Subprocess["signalCode"]
  /** Undefined where it did not get as far as a report. */
  totals: Totals | undefined
  /** Errors outside of any test, which no report counts. */
  errors: number
  /** What it said, where it was not said aloud. */
  kept: string
  /** How long it took, and how much of the processor it used with all that it started. */
  wall_ms: number
  cpu_ms: number
}

/** Longest for what was still to be read at the end: something left behind may hold the pipe open. */
const HEAR_MS = 5_000

/** The last lines of `bun test`: how many passed, failed and so on. */
const SUMMARY_CHARACTERS = 500

/** One `bun test` over the files of a group, killed when it takes longer than the group may. */
export async function bunTest(group: Group, surroundings: Surroundings): Promise<Ended> {
  const { env, scratch, aloud } = surroundings
  const place = join(scratch, group.name.replace(/[ /]/g, "-"))
  const report = `${place}.xml`
  const said = `${place}.log`
  const begun = performance.now()
  const child = Bun.spawn({
    cmd: [
      process.execPath,
      "test",
      "--no-orphans", // a file leaves nothing running behind
      ...(group.processes > 1 ? [`--parallel=${group.processes}`] : []),
      group.isAlone ? "--isolate" : "--no-isolate", // a fresh global object costs a third of the time
      `--timeout=${group.testTimeoutMs}`,
      "--reporter=junit",
      `--reporter-outfile=${report}`,
      ...group.files.map((path) => `./${path}`),
    ],
    cwd: root,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  })
  surroundings.onStart(child)
  const hear = async (stream: ReadableStream<Uint8Array>, teller: NodeJS.WriteStream) => {
    for await (const piece of stream) {
      appendFileSync(said, piece)
      if (aloud) teller.write(piece)
    }
  }
  const heard = [hear(child.stdout, process.stdout), hear(child.stderr, process.stderr)]
  const late = setTimeout(() => child.kill("SIGKILL"), group.groupTimeoutMs)
  const code = await child.exited
  clearTimeout(late)
  await Promise.race([Promise.all(heard), Bun.sleep(HEAR_MS)])
  const text = existsSync(said) ? readFileSync(said, "utf8") : ""
  return {
    code,
    signal: child.signalCode,
    totals: existsSync(report) ? readJunit(readFileSync(report, "utf8")) : undefined,
    errors: Number(/^ (\d+) errors?$/m.exec(text.slice(-SUMMARY_CHARACTERS))?.[1] ?? 0),
    kept: aloud ? "" : text,
    wall_ms: performance.now() - begun,
    cpu_ms: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000,
  }
}
