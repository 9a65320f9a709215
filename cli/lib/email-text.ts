import type { Components } from "../../src/client/components"
import { exits, Failure } from "./errors"
import { given } from "./input"
import { isBad, isGood, isHeld } from "./message-status"
import { ago, type Columns, count, fields, idColumn, wide } from "./table"
import { cleanLine, cleanText, type Paint } from "./terminal"
import { age, clockTime, millis, moment, pause, tookText } from "./time"

type Email = Components["Email"]

interface EmailStatus {
  status: string
  status_reason: string | null
}

type TimelineLine = Pick<TimelineEntry, "type" | "timestamp" | "recipient_email">
type TimelineEntry = Email["timeline"][number]

/** What a list shows of an email. */
interface EmailLine extends EmailStatus {
  id: string
  to: Components["NamedAddress"] | string
  subject: string | null
  attempts: number
  created_at: string | number
}

/** `Ann <a@b.c>` of either form in which an address may arrive. */
export function address(value: Components["NamedAddress"] | string | null | undefined): string {
  if (value === null || value === undefined) return ""
  if (typeof value === "string") return value
  return value.name ? `${value.name} <${value.email}>` : value.email
}

/** `✓ delivered`, `✗ bounced (NoEmail)`: the mark says the same as the colour. */
export function statusMark(email: EmailStatus, paint: Paint): string {
  const { status, status_reason } = email
  const reason = status_reason ? ` (${cleanLine(status_reason)})` : ""
  if (isGood(status)) return `${paint.green(`✓ ${status}`)}${reason}`
  if (isBad(status)) return `${paint.red(`✗ ${status}`)}${reason}`
  return `${paint.yellow(`… ${cleanLine(status)}`)}${reason}`
}

const paintStatus = (text: string, { status }: { status: string }, paint: Paint): string => {
  if (isGood(status)) return paint.green(text)
  return isBad(status) ? paint.red(text) : paint.yellow(text)
}

export const emailColumns: Columns<EmailLine> = {
  ID: idColumn("email"),
  TO: wide(({ to }) => address(to), "last"),
  SUBJECT: wide(({ subject }) => subject, "first"),
  STATUS: { cell: statusCell, paint: paintStatus, least: 12 },
  TRY: count(({ attempts }) => attempts, 1),
  AGE: ago(({ created_at }) => created_at),
}

export const attemptColumns: Columns<Components["EmailAttempt"]> = {
  TRY: "attempt",
  AT: "started_at",
  TOOK: ({ duration_ms }) => `${duration_ms} ms`,
  OUTCOME: "outcome",
  SERVER: wide(({ mx, provider }) => mx ?? provider),
  ANSWER: wide(({ response }) => response),
}

/** Copies that went another way than the email, with the reason: `ben@x.test failed (suppressed_recipient)`. */
export const copiesText = ({ recipients, status }: Pick<Email, "recipients" | "status">): string =>
  (recipients ?? [])
    .filter((one) => one.kind !== "to" && one.status !== status && one.status_reason !== null)
    .map((one) => `${one.email} ${one.status} (${one.status_reason})`)
    .join(", ")

function statusCell({ status, status_reason }: EmailStatus): string {
  if (isHeld(status_reason)) return "held"
  return isBad(status) ? `${status} ✗` : status
}

export function emailText(email: Email, paint: Paint): string {
  const { error, next_attempt_at, template } = email
  const head = fields(
    [
      ["id", email.id],
      ["from", address(email.from)],
      ["to", address(email.to)],
      ["subject", email.subject],
      ["template", template && `${template.name}, version ${template.version}`],
      ["provider", email.provider],
      ["attempts", email.attempts],
      ["scheduled", email.scheduled_at && `${email.scheduled_at} (${age(email.scheduled_at)})`],
      ["next try", next_attempt_at ? `${next_attempt_at} (${age(next_attempt_at)})` : null],
      ["error", error ? `${error.code}: ${error.message}` : null],
      ["copies", copiesText(email)],
      ["attached", (email.attachments ?? []).map(({ filename }) => filename).join(", ")],
      ["opened", hitsText(email.open_count, email.opened_at)],
      ["clicked", hitsText(email.click_count, email.clicked_at)],
      ["accepted", `${email.created_at} (${age(email.created_at)} ago)`],
    ],
    paint,
  )
  const lines = (email.timeline ?? []).flatMap((entry) => [
    eventText(entry, paint),
    ...serverWords(entry).map((words) => paint.dim(`  ${words}`)),
  ])
  return [statusMark(email, paint), head, ...lines].join("\n")
}

/** One attempt with all of what the server answered, for a narrow place. */
export function attemptText(tried: Components["EmailAttempt"], paint: Paint): string {
  const { attempt, started_at, duration_ms, outcome, mx, provider, tls, response } = tried
  const where = [mx ?? provider, tls].filter(Boolean).join(", ")
  const took = tookText(duration_ms)
  const head = cleanLine(`try ${attempt}  ${clockTime(started_at)}  ${took}  ${outcome}  ${where}`)
  return response ? `${head}\n${paint.dim(`  ${cleanLine(response)}`)}` : head
}

/** How often, and when first; null for never. */
const hitsText = (count: number, first_at: string | null) =>
  first_at && `${count} × since ${clockTime(first_at)}`

/** What the server said that caused a bad end. */
function serverWords({ type, detail }: TimelineEntry): string[] {
  const { response, mx } = detail ?? {}
  if (!response || !/bounced|complained|failed/.test(type)) return []
  return [cleanLine(mx ? `${mx}: ${response}` : response)]
}

export function eventText(
  { type, timestamp, recipient_email }: TimelineLine,
  paint: Paint,
): string {
  const at = paint.dim(clockTime(timestamp))
  return `${at} ${cleanLine(type).padEnd(18)} ${cleanLine(recipient_email ?? "")}`.trimEnd()
}

const POLL_MILLISECONDS = 200
export const MAIL_WAIT_MILLISECONDS = 30_000

export interface MailFilters {
  to?: string
  from?: string
  search?: string
  subject?: string
  since?: string
  unread?: true
  limit?: string
}

type MailSummary = Components["MailboxMailSummary"]
type Mail = Omit<
  Components["MailboxMail"],
  "headers" | "parse_error" | "raw_url" | "html_url" | "envelope_from" | "organizations"
>

export const mailColumns: Columns<MailSummary> = {
  ID: idColumn("mail"),
  FROM: wide(({ from }) => address(from), "first"),
  TO: wide(({ to }) => address(to), "last"),
  SUBJECT: wide(({ subject }) => subject, "first"),
  READ: { cell: ({ read }) => (read ? "✓" : ""), spare: 1 },
  AGE: ago(({ created_at }) => created_at),
}

export const mailQuery = ({ to, from, search, since, unread }: MailFilters) =>
  given({ to, from, search, unread, since: since && moment(since, "--since") })

export function mailText(mail: Mail, paint: Paint): string {
  const head = fields(
    [
      ["id", mail.id],
      ["email", mail.email_id],
      ["from", address(mail.from)],
      ["to", address(mail.to)],
      ["subject", mail.subject],
      ["at", mail.created_at],
      ["attached", mail.attachments.map(({ filename }) => filename ?? "unnamed").join(", ")],
    ],
    paint,
  )
  return `${head}\n\n${cleanText(mail.text ?? mail.html ?? "").trimEnd()}`
}

/**
 * The id of the newest mail that fits, as soon as there is one. Throws with exit 1 when none came within `limit`
 * milliseconds.
 */
export async function awaitMail(
  look: () => Promise<readonly MailSummary[]>,
  options: MailFilters,
  limit: number,
  hint: string,
): Promise<string> {
  const deadline = millis() + limit
  const wanted = (options.subject ?? "").toLowerCase()
  while (true) {
    const mails = await look()
    const found = mails.find(({ subject }) => (subject ?? "").toLowerCase().includes(wanted))
    if (found) return found.id
    if (millis() + POLL_MILLISECONDS > deadline) throw noMail(options, limit, hint)
    await pause(POLL_MILLISECONDS)
  }
}

function noMail(options: MailFilters, limit: number, hint: string): Failure {
  const { to, from, subject } = options
  const where = [`to ${to}`, from && `from ${from}`, subject && `with "${subject}" in its subject`]
  const message = `No mail ${where.filter(Boolean).join(" ")} came within ${limit / 1000} s.`
  return new Failure(exits.failed, "timeout", message, { details: { to, limit_ms: limit }, hint })
}
