import type { Components } from "../../src/client/components"
import { cleanLine, type Paint } from "./terminal"
import { clockTime } from "./time"

type Preflight = Components["Preflight"]

/** Every check with its mark, the warnings that no check shows, and whether the email would go. */
export function preflightText({ ok, checks, warnings, rendered }: Preflight, paint: Paint): string {
  const marks = { pass: paint.green("✓"), warn: paint.yellow("!"), fail: paint.red("✗") }
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.flatMap(({ name, outcome, detail }) => [
    `${marks[outcome]} ${name.padEnd(width)}  ${cleanLine(detail)}`,
    ...furtherWarnings(warnings, name).map((text) => `  ${" ".repeat(width)}  ${text}`),
  ])
  const end = ok
    ? `${paint.green("✓")} would be accepted, ${rendered.size_bytes} bytes`
    : `${paint.red("✗")} would be refused`
  return [...lines, "", end].join("\n")
}

/** The check itself shows the first. */
const furtherWarnings = (warnings: Preflight["warnings"], name: string): string[] =>
  warnings
    .filter(({ code }) => code === name)
    .slice(1)
    .map(({ message }) => cleanLine(message))

type Explanation = Components["Explanation"]

/** The summary, then each stage that had something to do, with its time and reason. */
export function explanationText({ summary, steps }: Explanation, paint: Paint): string {
  const marks = { pass: paint.green("✓"), wait: paint.yellow("…"), fail: paint.red("✗"), none: "" }
  const shown = steps.filter(({ outcome }) => outcome !== "none")
  const width = Math.max(...shown.map(({ stage }) => stage.length))
  const lines = shown.map(
    ({ at, stage, outcome, detail }) =>
      `${marks[outcome]} ${clockTime(at)}  ${stage.padEnd(width)}  ${cleanLine(detail)}`,
  )
  return [cleanLine(summary), "", ...lines].join("\n")
}
