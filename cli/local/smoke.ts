import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Action, Context } from "../lib/context"
import { version } from "../lib/environment"
import { exits, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { cleanLine, type Paint } from "../lib/terminal"
import { millis } from "../lib/time"
import {
  openNameServer,
  openReceiver,
  SMOKE_CHECKS,
  type SmokeBench,
  type SmokeCheck,
  smokeSettings,
} from "./smoke-checks"
import { junitReport, type SmokeResult, tapReport } from "./smoke-report"

/** How long a whole run may take on a slow machine; a usual one needs less than 15 s. */
const RUN_MILLISECONDS = 60_000

const FORMATS = ["lines", "tap", "junit"]

interface SmokeFlags {
  format?: string
}

/**
 * Tries this program in a scratch folder, on free ports of the loopback. Exit 0 when every check passed,
 * else 1. The server, the settings and the data of this machine are not touched.
 */
export const smoke: Action<SmokeFlags> = async (context, { format }) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  if (format !== undefined && !FORMATS.includes(format))
    throw usage(`--format: "${format}" is not one of ${FORMATS.join(", ")}`)
  context.output.promises(["ok", "version", "duration_ms", "checks"])
  const began = millis()
  const checks = await runAll(context, lineByLine(context, format))
  const duration_ms = millis() - began
  await report(context, format, { ok: checks.every(({ passed }) => passed), checks, duration_ms })
  return checks.every(({ passed }) => passed) ? exits.done : exits.failed
}

type SmokeRun = { ok: boolean; checks: SmokeResult[]; duration_ms: number }

/** People see each result at once. A report for machines is written whole, at the end. */
function lineByLine({ output, paint }: Context, format: string | undefined): TellResult {
  const is_wanted = format === "lines" || (format === undefined && output.form === "human")
  if (!is_wanted) return { next: () => {}, done: async () => {} }
  return {
    next: ({ name, about }) => output.passing(`${name}: ${about} …`),
    async done(result) {
      output.passing("")
      await output.raw(`${resultLine(result, paint)}\n`)
    },
  }
}

interface TellResult {
  next(check: SmokeCheck): void
  done(result: SmokeResult): Promise<void>
}

async function report({ output }: Context, format: string | undefined, run: SmokeRun) {
  if (format === "lines") return
  if (format === "tap") return output.raw(tapReport(run.checks))
  if (format === "junit") return output.raw(junitReport(run.checks, run.duration_ms))
  const failed = run.checks.filter(({ passed }) => !passed).length
  const seconds = (run.duration_ms / 1000).toFixed(1)
  const end = failed === 0 ? "everything works" : `${failed} of ${run.checks.length} checks failed`
  const human = () => `${end}: belfry ${version}, ${seconds} s`
  await output.record({ version, ...run }, human)
}

/** Runs the checks in turn. After a failed start no other check is possible. */
async function runAll(context: Context, tell: TellResult): Promise<SmokeResult[]> {
  const scratch = mkdtempSync(join(tmpdir(), "belfry-smoke-"))
  mkdirSync(join(scratch, "home"))
  const deadline = millis() + (context.timeout ?? RUN_MILLISECONDS)
  using names = await openNameServer()
  using receiver = openReceiver()
  const options = { scratch, deadline, settings: smokeSettings(names.address) }
  const bench: SmokeBench = { options, server: undefined, receiver }
  const leave = () => {
    bench.server?.kill()
    rmSync(scratch, { recursive: true, force: true })
  }
  onInterrupt(() => {
    leave()
    process.exit(exits.interrupted)
  })
  const results: SmokeResult[] = []
  try {
    for (const check of SMOKE_CHECKS) {
      tell.next(check)
      const result = await runOne(check, bench)
      await tell.done(result)
      results.push(result)
      if (!bench.server) break
    }
    return results
  } finally {
    leave()
  }
}

async function runOne(check: SmokeCheck, bench: SmokeBench): Promise<SmokeResult> {
  const { name, about } = check
  const began = millis()
  const took = () => millis() - began
  try {
    await check.run(bench)
    return { name, about, passed: true, duration_ms: took(), error: null }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { name, about, passed: false, duration_ms: took(), error: reason }
  }
}

const NAME_WIDTH = 11

function resultLine(
  { name, about, passed, duration_ms, error }: SmokeResult,
  paint: Paint,
): string {
  const mark = passed ? paint.green("✓") : paint.red("✗")
  const head = `${mark}  ${name.padEnd(NAME_WIDTH)} ${about}  ${paint.dim(`${duration_ms} ms`)}`
  return error === null ? head : `${head}\n   ${paint.red(cleanLine(error))}`
}
