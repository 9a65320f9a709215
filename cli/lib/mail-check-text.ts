import type { Components } from "../../src/client/components"
import { cleanLine, type Paint } from "./terminal"

type MailCheck = Components["MailCheck"]

/** Programs that a line names; the rest is a number. */
const MOST_NAMED = 4

/** What receivers will make of a mail: size, features that programs lack, content, and links. */
export function mailCheckText({ html, links, content, size }: MailCheck, paint: Paint): string {
  const clipped = size.clipped ? `; ${paint.yellow("some programs clip html over 102 KB")}` : ""
  return [
    `${size.bytes} bytes, html ${size.html_bytes} bytes${clipped}`,
    ...section("Not shown by every program", html.map(featureLine)),
    ...section(
      "Content",
      content.map(({ rule, detail }) => `${paint.yellow("!")} ${rule}: ${cleanLine(detail)}`),
    ),
    ...(links
      ? section(
          "Links",
          links.map((link) => linkLine(link, paint)),
        )
      : []),
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

function linkLine(
  { url, status, ok, error }: NonNullable<MailCheck["links"]>[number],
  paint: Paint,
) {
  const mark = ok === null ? paint.dim("–") : ok ? paint.green("✓") : paint.red("✗")
  const said = error === null ? `${status}` : cleanLine(error)
  return `${mark} ${cleanLine(url)}  ${said}`
}
