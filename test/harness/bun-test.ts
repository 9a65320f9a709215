import { closeSync, existsSync, openSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Subprocess } from "bun"
import type { Group } from "./groups"
import { readJunit, type Totals } from "./junit"
import { root } from "./migrations"

export interface Surroundings {
  env: Record<string, string>
  /** For its report, and for what it says when it runs beside another. */
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
  /** What it said, where it was not said aloud. */
  kept: string
  /** How long it took, and how much of the processor it used with all that it started. */
  wall_ms: number
  cpu_ms: number
}

/** One `bun test` over the files of a group, killed when it takes longer than the group may. */
export async function bunTest(group: Group, surroundings: Surroundings): Promise<Ended> {
  const { env, scratch, aloud } = surroundings
  const place = join(scratch, group.name.replaceAll(" ", "-"))
  const report = `${place}.xml`
  const said = `${place}.log`
  const out = aloud ? undefined : openSync(said, "w")
  const begun = performance.now()
  const child = Bun.spawn({
    cmd: [
      process.execPath,
      "test",
      "--isolate", // a file must not see another's clock, settings or engine
      "--no-orphans", // and leaves nothing running behind
      ...(group.processes > 1 ? [`--parallel=${group.processes}`] : []),
      `--timeout=${group.testTimeoutMs}`,
      "--reporter=junit",
      `--reporter-outfile=${report}`,
      ...group.files.map((path) => `./${path}`),
    ],
    cwd: root,
    env,
    stdio: ["ignore", out ?? "inherit", out ?? "inherit"],
  })
  surroundings.onStart(child)
  const late = setTimeout(() => child.kill("SIGKILL"), group.groupTimeoutMs)
  const code = await child.exited
  clearTimeout(late)
  if (out !== undefined) closeSync(out)
  return {
    code,
    signal: child.signalCode,
    totals: existsSync(report) ? readJunit(readFileSync(report, "utf8")) : undefined,
    kept: aloud ? "" : readFileSync(said, "utf8"),
    wall_ms: performance.now() - begun,
    cpu_ms: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000,
  }
}
