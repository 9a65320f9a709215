import { cleanText } from "../lib/terminal"

export type SmokeResult = {
  name: string
  about: string
  passed: boolean
  duration_ms: number
  /** Why the check failed; null when it passed. */
  error: string | null
}

/** The Test Anything Protocol, version 14: one line a check, and a YAML block for a failure. */
export function tapReport(checks: readonly SmokeResult[]): string {
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
export function junitReport(checks: readonly SmokeResult[], duration_ms: number): string {
  const failures = checks.filter(({ passed }) => !passed).length
  const totals = `tests="${checks.length}" failures="${failures}" errors="0" skipped="0"`
  const head = `name="belfry smoke" ${totals} time="${duration_ms / 1000}"`
  const cases = checks.map((check) => `    ${caseOf(check)}`)
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${head}>`,
    `  <testsuite ${head}>`,
    ...cases,
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

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }

const xml = (text: string): string =>
  cleanText(text).replaceAll(/[&<>"]/g, (sign) => ENTITIES[sign] ?? sign)
