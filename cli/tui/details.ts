import type { Components } from "../../src/client/components"
import { address, copiesText } from "../lib/email-text"
import { reportLines, verdictsOf } from "../lib/inbound-text"
import { cleanLine, cleanText, painter } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { trackingText } from "../lib/tracking-text"
import { fitted, remembered, spanText, wrapped } from "./cells"
import type { DeliveryView, InboundView, MessageDetail, MessageParts, Tab } from "./state"
import {
  deliveryBrush,
  deliveryWord,
  pair,
  type StyledLine,
  statusBrush,
  statusWord,
  styled,
} from "./table-lines"
import { textOfHtml } from "./text-of-html"

type EmailAttempt = Components["EmailAttempt"]
type Email = Components["Email"]
type EmailEvent = Components["EmailEvents"]["events"][number]
type DeliveryDetail = Components["DeliveryDetail"]
type InboundEmail = Components["InboundEmail"]
type TimelineEntry = Components["Email"]["timeline"][number]

/** A longer text is cut. */
const SHOWN_CHARACTERS = 200_000

/** All lines of the open tab, each exactly `width` cells. */
export const messageLines = ({ parts, tab }: MessageDetail, width: number, colour: boolean) =>
  linesOfMessage(parts, tab, width, colour)

/** What was sent, what came back, how long it took, and when it is tried again. */
export const deliveryLines = ({ found, problem }: DeliveryView, width: number, colour: boolean) =>
  linesOfDelivery(found, problem, width, colour)

/** A screen is drawn again and again while what is opened in it stays the same. */
const linesOfMessage = remembered((parts: MessageParts, tab: Tab, width: number, colour: boolean) =>
  painted(parts.problems?.[tab], content[tab](parts), width, colour),
)

/** What came in, what was checked, what it reports, and its text. */
export const inboundLines = ({ found, problem }: InboundView, width: number, colour: boolean) =>
  linesOfInbound(found, problem, width, colour)

const linesOfInbound = remembered(
  (found: InboundEmail | null, problem: string | null, width: number, colour: boolean) =>
    painted(problem, found && inboundParts(found), width, colour),
)

const linesOfDelivery = remembered(
  (found: DeliveryDetail | null, problem: string | null, width: number, colour: boolean) =>
    painted(problem, found && [...headLines(found), ...bodies(found)], width, colour),
)

/** Breaks lines to the width first and paints them then: an escape is no character. */
export function painted(
  problem: string | null | undefined,
  found: readonly StyledLine[] | null | undefined,
  width: number,
  colour: boolean,
): string[] {
  const paint = painter(colour)
  const lines = problem
    ? [styled(cleanLine(problem), "yellow")]
    : (found ?? [styled("loading…", "dim")])
  return lines.flatMap(({ text, brush }) =>
    wrapped(text, width).map((line) => {
      const full = fitted(line, width)
      return brush ? paint[brush](full) : full
    }),
  )
}

/** Undefined: not read yet. */
const content: Record<Tab, (parts: MessageParts) => StyledLine[] | undefined> = {
  Timeline: ({ email, attempts, reports }) =>
    email && [...timeline(email, attempts ?? []), ...(reports ?? []).flatMap(dsnLines)],
  Headers: ({ raw }) => (raw === undefined ? undefined : headers(raw)),
  Text: ({ content: found }) => found && text(found.html ? textOfHtml(found.html) : found.text),
  Raw: ({ raw }) => (raw === undefined ? undefined : text(raw)),
  Events: ({ events }) => events?.events.flatMap(eventLines),
  Tracking: ({ tracking }) => tracking && trackingLines(tracking),
}

/** The lines of `belfry emails tracking`; what a stranger wrote is cleaned there. */
const trackingLines = (tracking: Components["EmailTracking"]): StyledLine[] =>
  trackingText(tracking, painter(false))
    .split("\n")
    .map((line) => styled(line))

function timeline(email: Email, attempts: readonly EmailAttempt[]): StyledLine[] {
  const { status, status_reason, error, next_attempt_at } = email
  const why = status_reason ? ` (${cleanLine(status_reason)})` : ""
  return [
    styled(`${statusWord(cleanLine(status))}${why}`, statusBrush(status)),
    ...pair("from", address(email.from)),
    ...pair("to", address(email.to)),
    ...pair("subject", email.subject),
    ...pair("accepted", email.created_at),
    ...pair("template", templateText(email)),
    ...pair("provider", email.provider),
    ...pair("scheduled", email.scheduled_at),
    ...pair("next try", next_attempt_at),
    ...pair("error", error && `${error.code}: ${error.message}`),
    ...pair("copies", copiesText(email)),
    ...pair("attached", (email.attachments ?? []).map(({ filename }) => filename).join(", ")),
    ...pair("opened", hitsText(email.open_count, email.opened_at)),
    ...pair("clicked", hitsText(email.click_count, email.clicked_at)),
    styled(""),
    ...(email.timeline ?? []).flatMap(storyLines),
    ...(attempts.length > 0 ? [styled(""), ...attempts.flatMap(attemptLines)] : []),
  ]
}

/** How often, and when first; null for never. */
const hitsText = (count: number, first_at: string | null) =>
  first_at && `${count} × since ${clockTime(first_at)}`

const templateText = ({ template }: Email) =>
  template && `${template.name}, version ${template.version}`

/** A fact, and the words of the server that caused it. */
function storyLines(entry: TimelineEntry): StyledLine[] {
  const { response, mx } = entry.detail ?? {}
  const is_bad = /bounced|complained|failed/.test(entry.type)
  if (!is_bad || !response) return [styled(factLine(entry))]
  const said = cleanLine(mx ? `${mx}: ${response}` : response)
  return [styled(factLine(entry)), styled(`  ${said}`, "dim")]
}

/** What a receiving server reported afterwards (RFC 3464). */
function dsnLines(mail: Components["InboundEmailSummary"]): StyledLine[] {
  return [
    styled(""),
    styled(`DSN  ${clockTime(mail.created_at)}  ${cleanLine(mail.id)}`, "bold"),
    ...reportLines(mail).map((line) => styled(`  ${line}`)),
  ]
}

function inboundParts(mail: InboundEmail): StyledLine[] {
  const { spam, stripped_text, text_body, html_body } = mail
  const rules = spam.rules.map(({ rule, points }) => `${rule} ${points}`).join(", ")
  const body = text_body ?? (html_body && textOfHtml(html_body)) ?? stripped_text
  const report = reportLines(mail)
  return [
    ...pair("from", address(mail.from) || mail.envelope.from || "<>"),
    ...pair("to", mail.to_email),
    ...pair("subject", mail.subject),
    ...pair("received", mail.created_at),
    ...pair("status", mail.status === "processed" ? null : mail.status),
    ...pair("answers", mail.replied_to_message_id),
    ...pair("thread", mail.thread_id),
    styled(`checked    ${verdictsOf(mail)}`, mail.verified === false ? "red" : "green"),
    ...pair("spam", rules ? `${spam.score} (${rules})` : spam.score),
    ...pair("attached", mail.attachments.map(({ filename }) => filename ?? "unnamed").join(", ")),
    ...(report.length > 0 ? [styled(""), ...report.map((line) => styled(line))] : []),
    styled(""),
    ...text(body),
  ]
}

function factLine({ type, timestamp, recipient_email }: TimelineEntry): string {
  const at = clockTime(timestamp)
  return `${at} ${cleanLine(type).padEnd(18)} ${cleanLine(recipient_email ?? "")}`.trimEnd()
}

function attemptLines(tried: EmailAttempt): StyledLine[] {
  const { attempt, started_at, duration_ms, outcome, mx, provider, tls, response } = tried
  const where = cleanLine([mx ?? provider, tls].filter(Boolean).join(", "))
  const head = `try ${attempt}  ${clockTime(started_at)}  ${spanText(duration_ms)}  ${cleanLine(outcome)}`
  return [
    styled(`${head}  ${where}`),
    ...(response ? [styled(`  ${cleanLine(response)}`, "dim")] : []),
  ]
}

function eventLines(event: EmailEvent): StyledLine[] {
  const { id, bounce_type, bounce_subtype, detail, url, actor, user_agent } = event
  const bounce = [bounce_type, bounce_subtype].filter(Boolean).join(" ")
  const known = Object.entries(detail ?? {}).filter(([, value]) => value !== null)
  return [
    styled(factLine(event)),
    styled(`  ${cleanLine(id)}`, "dim"),
    ...(bounce ? [styled(`  ${cleanLine(bounce)}`)] : []),
    ...(url ? [styled(`  ${cleanLine(url)}`)] : []),
    ...(actor ? [styled(`  ${cleanLine([actor, user_agent].filter(Boolean).join(", "))}`)] : []),
    ...known.map(([name, value]) => styled(cleanLine(`  ${name}: ${plain(value)}`))),
  ]
}

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))

/** Of the bytes that went out, not of what was asked for. */
function headers(raw: string): StyledLine[] {
  const end = raw.search(/\r?\n\r?\n/)
  return text(end < 0 ? raw : raw.slice(0, end))
}

const textLines = (found: string): StyledLine[] =>
  cleanText(found)
    .split("\n")
    .map((line) => styled(line))

function text(found: string | null | undefined): StyledLine[] {
  if (!found) return [styled("there is none", "dim")]
  const rest = found.length - SHOWN_CHARACTERS
  return [
    ...textLines(found.slice(0, SHOWN_CHARACTERS)),
    ...(rest > 0 ? [styled(`… ${rest.toLocaleString("en")} more characters`, "dim")] : []),
  ]
}

function headLines(delivery: DeliveryDetail): StyledLine[] {
  const { status, attempts, max_attempts, next_attempt_at, attempt_log } = delivery
  return [
    styled(deliveryWord(cleanLine(status)), deliveryBrush(status)),
    ...pair("event", `${delivery.event_type}  ${delivery.event_id}`),
    ...pair("to", delivery.url),
    ...pair("trigger", delivery.trigger),
    ...pair("attempts", `${attempts} of ${max_attempts}`),
    ...pair(status === "held" ? "held until" : "next try", next_attempt_at),
    ...pair("error", delivery.last_error),
    ...(attempt_log?.length ? [styled("")] : []),
    ...(attempt_log ?? []).map(({ attempt, at, response_status, error, latency_ms }) => {
      const took = latency_ms === null ? "" : spanText(latency_ms)
      const answer = [response_status, error].filter(Boolean).join(" ")
      return styled(cleanLine(`try ${attempt}  ${clockTime(at)}  ${took.padEnd(6)}  ${answer}`))
    }),
  ]
}

function bodies(delivery: DeliveryDetail): StyledLine[] {
  const { payload, request_headers, response_headers, last_response_body } = delivery
  const status = delivery.last_response_status ?? "none yet"
  return [
    styled(""),
    styled("REQUEST", "bold"),
    ...headerLines(request_headers),
    styled(""),
    ...textLines(typeof payload === "string" ? payload : JSON.stringify(payload, null, 2)),
    styled(""),
    styled(`RESPONSE ${status}`, "bold"),
    ...headerLines(response_headers),
    styled(""),
    ...textLines(last_response_body ?? ""),
  ]
}

const headerLines = (headers: DeliveryDetail["request_headers"]): StyledLine[] =>
  Object.entries(headers ?? {}).map(([name, value]) =>
    styled(cleanLine(`${name}: ${value}`), "dim"),
  )
