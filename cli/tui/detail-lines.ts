import type { Components } from "../../src/client/components"
import { address } from "../lib/email-text"
import { cleanLine, cleanText, painter } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { fitted, wrapped } from "./cells"
import { pair, type Told, told } from "./columns"
import { statusBrush, statusWord } from "./message-list"
import { remembered } from "./remembered"
import { spanText } from "./spans"
import type { MessageDetail, Parts, Tab } from "./state"
import { textOfHtml } from "./text-of-html"

type EmailAttempt = Components["EmailAttempt"]
type Email = Components["Email"]
type EmailEvent = Components["EmailEvents"]["events"][number]
type TimelineEntry = Components["Email"]["timeline"][number]

/** More of a message nobody reads on a terminal. */
const SHOWN_CHARACTERS = 200_000

/** All lines of the open tab, each exactly `width` cells. */
export const messageLines = ({ parts, tab }: MessageDetail, width: number, colour: boolean) =>
  linesOf(parts, tab, width, colour)

/** A screen is drawn again and again while what is opened in it stays the same. */
const linesOf = remembered((parts: Parts, tab: Tab, width: number, colour: boolean) => {
  const problem = parts.problems?.[tab]
  const lines = problem === undefined ? (content[tab](parts) ?? [told("loading…", "dim")]) : []
  const all = problem === undefined ? lines : [told(cleanLine(problem), "yellow")]
  return painted(all, width, colour)
})

/** Breaks lines to the width first and paints them then: an escape is no character. */
export function painted(lines: readonly Told[], width: number, colour: boolean): string[] {
  const paint = painter(colour)
  return lines.flatMap(({ text, brush }) =>
    wrapped(text, width).map((line) => {
      const full = fitted(line, width)
      return brush ? paint[brush](full) : full
    }),
  )
}

/** Undefined: not read yet. */
const content: Record<Tab, (parts: Parts) => Told[] | undefined> = {
  Timeline: ({ email, attempts }) => email && timeline(email, attempts ?? []),
  Headers: ({ raw }) => (raw === undefined ? undefined : headers(raw)),
  Text: ({ content: found }) => found && text(found.html ? textOfHtml(found.html) : found.text),
  Raw: ({ raw }) => (raw === undefined ? undefined : text(raw)),
  Events: ({ events }) => events?.events.flatMap(eventLines),
}

function timeline(email: Email, attempts: readonly EmailAttempt[]): Told[] {
  const { status, status_reason, error, next_attempt_at } = email
  const why = status_reason ? ` (${cleanLine(status_reason)})` : ""
  return [
    told(`${statusWord(cleanLine(status))}${why}`, statusBrush(status)),
    ...pair("from", address(email.from)),
    ...pair("to", address(email.to)),
    ...pair("subject", email.subject),
    ...pair("accepted", email.created_at),
    ...pair("provider", email.provider),
    ...pair("next try", next_attempt_at),
    ...pair("error", error && `${error.code}: ${error.message}`),
    ...pair("attached", (email.attachments ?? []).map(({ filename }) => filename).join(", ")),
    told(""),
    ...(email.timeline ?? []).map((entry) => told(factLine(entry))),
    ...(attempts.length > 0 ? [told(""), ...attempts.flatMap(attemptLines)] : []),
  ]
}

function factLine({ type, timestamp, recipient_email }: TimelineEntry): string {
  const at = clockTime(timestamp)
  return `${at} ${cleanLine(type).padEnd(18)} ${cleanLine(recipient_email ?? "")}`.trimEnd()
}

function attemptLines(tried: EmailAttempt): Told[] {
  const { attempt, started_at, duration_ms, outcome, mx, provider, tls, response } = tried
  const where = cleanLine([mx ?? provider, tls].filter(Boolean).join(", "))
  const head = `try ${attempt}  ${clockTime(started_at)}  ${spanText(duration_ms)}  ${cleanLine(outcome)}`
  return [told(`${head}  ${where}`), ...(response ? [told(`  ${cleanLine(response)}`, "dim")] : [])]
}

function eventLines(event: EmailEvent): Told[] {
  const { id, bounce_type, bounce_subtype, detail } = event
  const bounce = [bounce_type, bounce_subtype].filter(Boolean).join(" ")
  const known = Object.entries(detail ?? {}).filter(([, value]) => value !== null)
  return [
    told(factLine(event)),
    told(`  ${cleanLine(id)}`, "dim"),
    ...(bounce ? [told(`  ${cleanLine(bounce)}`)] : []),
    ...known.map(([name, value]) => told(cleanLine(`  ${name}: ${plain(value)}`))),
  ]
}

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))

/** Of the bytes that went out, not of what was asked for. */
function headers(raw: string): Told[] {
  const end = raw.search(/\r?\n\r?\n/)
  return text(end < 0 ? raw : raw.slice(0, end))
}

function text(found: string | null | undefined): Told[] {
  if (!found) return [told("there is none", "dim")]
  const shown = cleanText(found.slice(0, SHOWN_CHARACTERS)).split("\n")
  const rest = found.length - SHOWN_CHARACTERS
  return [
    ...shown.map((line) => told(line)),
    ...(rest > 0 ? [told(`… ${rest.toLocaleString("en")} more characters`, "dim")] : []),
  ]
}
