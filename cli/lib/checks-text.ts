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

type MailCheck = Components["MailCheck"]

/** Programs that a line names; the rest is a number. */
const MOST_NAMED = 4

/** What receivers will make of a mail: size, features that programs lack, content, and links. */
export function mailCheckText({ html, links, content, size }: MailCheck, paint: Paint): string {
  const clipped = size.clipped ? `; ${paint.yellow("some programs clip html over 102 KB")}` : ""
  const found = content.map(
    ({ rule, detail }) => `${paint.yellow("!")} ${rule}: ${cleanLine(detail)}`,
  )
  return [
    `${size.bytes} bytes, html ${size.html_bytes} bytes${clipped}`,
    ...section("Not shown by every program", html.map(featureLine)),
    ...section("Content", found),
    ...section("Links", links?.map((link) => linkLine(link, paint)) ?? []),
  ].join("\n")
}

const section = (title: string, lines: string[]): string[] =>
  lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  ${line}`)]

function featureLine({ feature, count, programs }: MailCheck["html"][number]): string {
  const lacking = programs.filter(({ support }) => support === "no")
  const named = (lacking.length > 0 ? lacking : programs).map(({ name }) => name)
  const more = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : ""
  const what = lacking.length > 0 ? "not in" : "in part in"
  return `${feature} (${count}×): ${what} ${named.slice(0, MOST_NAMED).join(", ")}${more}`
}

type CheckedLink = NonNullable<MailCheck["links"]>[number]

function linkLine({ url, status, ok, error }: CheckedLink, paint: Paint): string {
  const mark = ok === null ? paint.dim("–") : ok ? paint.green("✓") : paint.red("✗")
  return `${mark} ${cleanLine(url)}  ${error === null ? status : cleanLine(error)}`
}
