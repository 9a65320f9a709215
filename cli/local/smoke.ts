import type { Action } from "../lib/context"
import { version } from "../lib/environment"
import { exits, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { cleanLine, cleanText, type Paint } from "../lib/terminal"
import { millis } from "../lib/time"
import { SMOKE_CHECKS, SmokeBox, type SmokeCheck } from "./smoke-checks"

/** How long a whole run may take on a slow machine; a usual one needs less than 15 s. */
const RUN_MILLISECONDS = 60_000

const FORMATS = ["lines", "tap", "junit"]

type SmokeResult = {
  name: string
  about: string
  passed: boolean
  duration_ms: number
  /** Why the check failed; null when it passed. */
  error: string | null
}

/**
 * Tries this program in a scratch folder, on free ports of the loopback. Exit 0 when every check passed,
 * else 1. The server, the settings and the data of this machine are not touched.
 */
export const smoke: Action<{ format?: string }> = async (context, { format }) => {
  const { flags, output, paint } = context
  if (flags.dryRun) throw usage("--dry-run is not possible with this command")
  if (format !== undefined && !FORMATS.includes(format))
    throw usage(`--format: "${format}" is not one of ${FORMATS.join(", ")}`)
  output.promises(["ok", "version", "duration_ms", "checks"])
  // People see each result at once. A report for machines is written whole, at the end.
  const is_live = format === "lines" || (format === undefined && output.form === "human")
  const began = millis()
  const checks: SmokeResult[] = []
  using box = new SmokeBox(began + (context.timeout ?? RUN_MILLISECONDS))
  onInterrupt(() => {
    box[Symbol.dispose]()
    process.exit(exits.interrupted)
  })
  for (const check of SMOKE_CHECKS) {
    if (is_live) output.passing(`${check.name}: ${check.about} …`)
    const result = await resultOf(check, box)
    checks.push(result)
    if (is_live) output.passing("")
    if (is_live) await output.raw(`${resultLine(result, paint)}\n`)
    if (!checks[0]?.passed) break // without a start no other check is possible
  }
  const duration_ms = millis() - began
  const failed = checks.filter(({ passed }) => !passed).length
  if (format === "tap") await output.raw(tapReport(checks))
  if (format === "junit") await output.raw(junitReport(checks, duration_ms))
  if (format === undefined) {
    const end = failed === 0 ? "everything works" : `${failed} of ${checks.length} checks failed`
    const human = () => `${end}: belfry ${version}, ${(duration_ms / 1000).toFixed(1)} s`
    await output.record({ version, ok: failed === 0, checks, duration_ms }, human)
  }
  return failed === 0 ? exits.done : exits.failed
}

async function resultOf({ name, about, run }: SmokeCheck, box: SmokeBox): Promise<SmokeResult> {
  const began = millis()
  const error = await run(box).then(
    () => null,
    (reason) => (reason instanceof Error ? reason.message : String(reason)),
  )
  return { name, about, passed: error === null, duration_ms: millis() - began, error }
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

/** The Test Anything Protocol, version 14: one line a check, and a YAML block for a failure. */
function tapReport(checks: readonly SmokeResult[]): string {
  const lines = checks.flatMap(({ name, about, passed, duration_ms, error }, at) => [
    `${passed ? "ok" : "not ok"} ${at + 1} - ${name}: ${about}`,
    "  ---",
    `  duration_ms: ${duration_ms}`,
    ...(error === null ? [] : [`  message: ${JSON.stringify(cleanText(error))}`]),
    "  ...",
  ])
  return `${["TAP version 14", `1..${checks.length}`, ...lines].join("\n")}\n`
}

/** JUnit XML as CI systems read it: one suite, with one case for each check. */
function junitReport(checks: readonly SmokeResult[], duration_ms: number): string {
  const failures = checks.filter(({ passed }) => !passed).length
  const totals = `tests="${checks.length}" failures="${failures}" errors="0" skipped="0"`
  const head = `name="belfry smoke" ${totals} time="${duration_ms / 1000}"`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${head}>`,
    `  <testsuite ${head}>`,
    ...checks.map((check) => `    ${caseOf(check)}`),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n")
}

function caseOf({ name, about, duration_ms, error }: SmokeResult): string {
  const head = `<testcase classname="smoke" name="${xml(`${name}: ${about}`)}" time="${duration_ms / 1000}"`
  if (error === null) return `${head}/>`
  return `${head}><failure message="${xml(error)}">${xml(error)}</failure></testcase>`
}

const xml = (text: string): string => Bun.escapeHTML(cleanText(text))
