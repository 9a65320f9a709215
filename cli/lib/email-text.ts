import type { Components } from "../../src/client/components"
import { address, ago, type Columns, count, fields, idColumn, wide } from "./table"
import { cleanLine, cleanText, type Paint } from "./terminal"
import { age, clockTime, tookText } from "./time"

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

/** The text left, and nobody knows whether the provider took it. */
export const UNCONFIRMED = "unconfirmed"

/** `✓ delivered`, `✗ bounced (NoEmail)`: the mark says the same as the colour. */
export function statusMark(email: EmailStatus, paint: Paint): string {
  const { status, status_reason } = email
  const reason = status_reason ? ` (${cleanLine(status_reason)})` : ""
  const is_sure = status_reason !== UNCONFIRMED
  if (isGood(status) && is_sure) return `${paint.green(`✓ ${status}`)}${reason}`
  if (isBad(status)) return `${paint.red(`✗ ${status}`)}${reason}`
  const mark = isFinal(status) ? "–" : "…" // a cancelled text waits for nothing
  return `${paint.yellow(`${mark} ${cleanLine(status)}`)}${reason}`
}

export const paintStatus = (text: string, { status }: { status: string }, paint: Paint): string => {
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
const copiesText = ({ recipients, status }: Pick<Email, "recipients" | "status">): string =>
  (recipients ?? [])
    .filter((one) => one.kind !== "to" && one.status !== status && one.status_reason !== null)
    .map((one) => `${one.email} ${one.status} (${one.status_reason})`)
    .join(", ")

export function statusCell({ status, status_reason }: EmailStatus): string {
  if (isHeld(status_reason)) return "held"
  if (status_reason === UNCONFIRMED) return status_reason
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

type MailSummary = Components["MailboxMailSummary"]
type Mail = Omit<
  Components["MailboxMail"],
  | "headers"
  | "parse_error"
  | "raw_url"
  | "html_url"
  | "envelope_from"
  | "organizations"
  | "release_refusal"
>

export interface MailFilters {
  to?: string
  from?: string
  search?: string
  subject?: string
  since?: string
  unread?: true
  limit?: string
  system?: true
}

/** Whose mail is read: the project's, or that of the instance, which only its machine may read. */
export interface OpenMailbox {
  list(query: object, limit: number): Promise<MailSummary[]>
  get(id: string): Promise<Mail>
  columns: Columns<MailSummary>
  /** What an empty waiting time is followed by. */
  hint: string
}

const paintMailStatus = (text: string, { status }: MailSummary, paint: Paint): string =>
  status === null ? text : paintStatus(text, { status }, paint)

export const mailColumns: Columns<MailSummary> = {
  ID: idColumn("mail"),
  FROM: wide(({ from }) => address(from), "first"),
  TO: wide(({ to }) => address(to), "last"),
  SUBJECT: wide(({ subject }) => subject, "first"),
  STATUS: { cell: ({ status }) => status ?? "", paint: paintMailStatus, spare: 2 },
  READ: { cell: ({ read }) => (read ? "✓" : ""), spare: 1 },
  AGE: ago(({ created_at }) => created_at),
}

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

type Preflight = Components["Preflight"]

/** Every check with its mark, the warnings that no check shows, and whether the email would go. */
export function preflightText({ ok, checks, warnings, rendered }: Preflight, paint: Paint): string {
  const marks = { pass: paint.green("✓"), warn: paint.yellow("!"), fail: paint.red("✗") }
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.flatMap(({ name, outcome, detail }) => [
    `${marks[outcome]} ${name.padEnd(width)}  ${cleanLine(detail)}`,
    ...warnings
      .filter(({ code }) => code === name)
      .slice(1) // the check itself shows the first
      .map(({ message }) => `  ${" ".repeat(width)}  ${cleanLine(message)}`),
  ])
  const end = ok
    ? `${paint.green("✓")} would be accepted, ${rendered.size_bytes} bytes`
    : `${paint.red("✗")} would be refused`
  return [...lines, "", end].join("\n")
}

type Step = Components["Explanation"]["steps"][number]

/** Of a message of any channel; each has stages of its own. */
interface Explanation {
  summary: string
  steps: readonly (Pick<Step, "at" | "outcome" | "detail"> & { stage: string })[]
}

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

type Tracking = Components["EmailTracking"]

/** The statistics of one email: openings, clicks, links, and the newest hits. */
export function trackingText(tracking: Tracking, paint: Paint): string {
  const { email_id, track_opens, track_clicks, opens, clicks, links, recent } = tracking
  const head = fields(
    [
      ["id", email_id],
      ["openings", track_opens ? counts(opens) : "not tracked"],
      ["clicks", track_clicks ? counts(clicks) : "not tracked"],
    ],
    paint,
  )
  const followed = links.map(
    ({ url, human, total }) => `${String(human).padStart(6)} of ${total}  ${cleanLine(url)}`,
  )
  const hits = recent.map((hit) => hitText(hit, paint))
  return [head, ...section("links", followed), ...section("newest", hits)].join("\n")
}

/** The number of people first: the others are proxies and scanners. */
const counts = ({ human, unique, machine, total }: Tracking["opens"]): string =>
  `${human} by ${unique} ${unique === 1 ? "person" : "people"}, ${machine} by machines, ${total} in all`

function hitText(hit: Tracking["recent"][number], paint: Paint): string {
  const { type, timestamp, actor, client, os, device, url } = hit
  const program = [client, os, device].filter(Boolean).join(", ")
  const words = [type.padEnd(5), actor.padEnd(7), program, cleanLine(url ?? "")]
  return `${paint.dim(clockTime(timestamp))} ${words.join(" ").trimEnd()}`
}

/** The message left, is where it was meant to go, was looked at there, or came in. */
export const isGood = (status: string): boolean => GOOD.has(status)

/** The message did not reach its recipient, or its recipient complained. */
export const isBad = (status: string): boolean => BAD.has(status)

/** Nothing more happens, except for what a recipient does. */
export const isFinal = (status: string): boolean =>
  ["delivered", "cancelled", "received"].includes(status) || BAD.has(status)

/** The queue of the work that is held since a restore. */
export const HELD_QUEUE = "held_after_restore"

/** The message or publish waits since a restore. Its status stays, and its reason names the queue. */
export const isHeld = (status_reason: string | null | undefined): boolean =>
  status_reason?.includes(HELD_QUEUE) ?? false

const GOOD = new Set(["sent", "delivered", "received", "seen", "read", "archived"])

const BAD = new Set(["bounced", "complained", "failed", "undelivered", "expired"])
