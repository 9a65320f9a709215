import type { Components } from "../../src/client/components"
import { address, ago, type Columns, fields, idColumn, wide } from "./table"
import { cleanLine, cleanText, type Paint } from "./terminal"

type InboundSummary = Components["InboundEmailSummary"]

/** What reports say, as far as tables show it. */
interface ReportFacts {
  recipients: Partial<Record<"email" | "action" | "status" | "diagnostic" | "remote_mta", string>>[]
  original_recipients: string[]
  policies: {
    policy_domain?: string
    successful_sessions?: number
    failed_sessions?: number
    failures?: { result_type?: string }[]
  }[]
  records: Partial<Record<"source_ip" | "count" | "disposition" | "dkim" | "spf", string>>[]
  policy: { p?: string }
  [name: string]: unknown
}

const NO_FACTS: ReportFacts = {
  recipients: [],
  original_recipients: [],
  policies: [],
  records: [],
  policy: {},
}

const factsOf = ({ report }: Pick<InboundSummary, "report">): ReportFacts => ({
  ...NO_FACTS,
  ...report,
})

const ID = idColumn<InboundSummary>("inbound")
const AGE = ago<InboundSummary>(({ created_at }) => created_at)

/** Of received mail of all kinds. */
export const receivedColumns: Columns<InboundSummary> = {
  ID,
  FROM: wide(({ from, envelope }) => (from ? address(from) : envelope.from), "first"),
  TO: wide(({ to_email }) => to_email, "last"),
  SUBJECT: wide(({ subject }) => subject, "first"),
  KIND: {
    cell: ({ kind, status }) => (status === "processed" ? kind : status),
    paint: (text, { kind }, paint) => (BAD_KINDS.includes(kind) ? paint.red(text) : text),
    least: 9,
  },
  VERIFIED: { cell: verifiedCell, paint: paintVerified, spare: 1 },
  SPAM: {
    cell: ({ spam }) => (spam.flagged ? `${spam.score} ✗` : String(spam.score)),
    paint: (text, { spam }, paint) => (spam.flagged ? paint.red(text) : text),
    spare: 2,
  },
  AGE,
}

const bounces: Columns<InboundSummary> = {
  ID,
  RECIPIENT: wide((mail) => factsOf(mail).recipients[0]?.email, "last"),
  ACTION: (mail) => factsOf(mail).recipients[0]?.action,
  CODE: (mail) => factsOf(mail).recipients[0]?.status,
  WORDS: wide((mail) => factsOf(mail).recipients[0]?.diagnostic, "first"),
  SERVER: { ...wide((mail) => factsOf(mail).reporting_mta), spare: 1 },
  AGE,
}

const complaints: Columns<InboundSummary> = {
  ID,
  RECIPIENT: wide((mail) => factsOf(mail).original_recipients[0], "last"),
  TYPE: (mail) => factsOf(mail).feedback_type,
  PROGRAM: wide((mail) => factsOf(mail).user_agent, "first"),
  SOURCE: { cell: (mail) => textOf(factsOf(mail).source_ip), spare: 1 },
  AGE,
}

const dmarc: Columns<InboundSummary> = {
  ID,
  REPORTER: wide((mail) => factsOf(mail).org_name, "first"),
  DOMAIN: wide((mail) => factsOf(mail).domain, "last"),
  POLICY: (mail) => factsOf(mail).policy.p,
  MAILS: (mail) => factsOf(mail).messages,
  ALIGNED: { cell: (mail) => shareOf(factsOf(mail)), paint: paintShare },
  FROM: { cell: (mail) => dayOf(factsOf(mail).begin), spare: 1 },
  TO: { cell: (mail) => dayOf(factsOf(mail).end), spare: 2 },
  AGE,
}

const tls: Columns<InboundSummary> = {
  ID,
  REPORTER: wide((mail) => factsOf(mail).organization_name, "first"),
  DOMAIN: wide((mail) => factsOf(mail).policies[0]?.policy_domain, "last"),
  OK: (mail) => factsOf(mail).successful_sessions,
  FAILED: (mail) => factsOf(mail).failed_sessions,
  WHY: wide((mail) => failuresOf(factsOf(mail).policies)),
  FROM: { cell: (mail) => dayOf(factsOf(mail).begin), spare: 1 },
  AGE,
}

const by_kind: Partial<Record<string, Columns<InboundSummary>>> = {
  bounce: bounces,
  complaint: complaints,
  dmarc_report: dmarc,
  tls_report: tls,
}

/** Columns of a list of received mail; of one kind of report, what these reports say. */
export const inboundColumns = (kind: string | undefined): Columns<InboundSummary> =>
  by_kind[kind ?? ""] ?? receivedColumns

const BAD_KINDS = ["bounce", "complaint"]

const textOf = (value: unknown) => String(value ?? "")

const yesOrNo = (value: boolean | null) => (value === null ? "" : value ? "yes" : "no ✗")

function paintVerified(text: string, { verified }: InboundSummary, paint: Paint): string {
  return verified === false ? paint.red(text) : text
}

const dayOf = (time: unknown) => textOf(time).slice(0, "2026-11-21".length)

/** `96 %` of the messages passed DMARC; rounded down, so that only all of them are 100 %. */
function shareOf({ messages, aligned }: ReportFacts): string {
  const all = Number(messages ?? 0)
  return all === 0 ? "" : `${Math.floor((100 * Number(aligned ?? 0)) / all)} %`
}

function paintShare(text: string, mail: InboundSummary, paint: Paint): string {
  return ["100 %", ""].includes(shareOf(factsOf(mail))) ? text : paint.yellow(text)
}

const MOST_REASONS = 3

function failuresOf(policies: ReportFacts["policies"]): string {
  const all = policies.flatMap(({ failures = [] }) =>
    failures.map(({ result_type }) => result_type),
  )
  return [...new Set(all)].slice(0, MOST_REASONS).join(", ")
}

/** `spf pass  dkim pass  dmarc fail  arc none`. */
export const verdictsOf = (
  mail: Pick<InboundSummary, `${"spf" | "dkim" | "dmarc" | "arc"}_verdict`>,
) =>
  (["spf", "dkim", "dmarc", "arc"] as const)
    .flatMap((name) => (mail[`${name}_verdict`] ? `${name} ${mail[`${name}_verdict`]}` : []))
    .join("  ")

type Shown = InboundSummary & Partial<Pick<Components["InboundEmail"], "text_body" | "html_body">>

/** One received mail for people: what it is, what was checked, and its text. */
export function inboundText(mail: Shown, paint: Paint): string {
  const { spam, attachments, report } = mail
  const rules = spam.rules.map(({ rule, points }) => `${rule} ${points}`).join(", ")
  const head = fields(
    [
      ["id", mail.id],
      ["from", address(mail.from) || mail.envelope.from],
      ["to", mail.to_email],
      ["subject", mail.subject],
      ["kind", mail.kind],
      ["status", mail.status === "processed" ? null : mail.status],
      ["answers", mail.replied_to_message_id],
      ["thread", mail.thread_id],
      ["hash", mail.mailbox_hash],
      ["checked", verdictsOf(mail)],
      ["verified", yesOrNo(mail.verified)],
      ["spam", rules ? `${spam.score} (${rules})` : spam.score],
      [
        "attached",
        attachments.map(({ id, filename }) => `${id} ${filename ?? "unnamed"}`).join(", "),
      ],
      ["size", mail.size],
      ["received", mail.created_at],
    ],
    paint,
  )
  const said = report ? [reportLines(mail).join("\n")] : []
  const body = cleanText(mail.text_body ?? mail.html_body ?? "").trimEnd()
  return [head, ...said, ...(body ? [body] : [])].join("\n\n")
}

/** `yes`, or the checks that decide about it and failed: `spf dmarc ✗`. */
function verifiedCell(mail: InboundSummary): string {
  const failed = (["spf", "dmarc"] as const).filter((name) => mail[`${name}_verdict`] === "fail")
  if (mail.verified !== false || failed.length === 0) return yesOrNo(mail.verified)
  return `${failed.join(" ")} ✗`
}

const MOST_LINES = 20

/** What a report says, a line for each thing; all of it stands in the JSON. */
export function reportLines(mail: Pick<InboundSummary, "report">): string[] {
  if (!mail.report) return []
  const facts = factsOf(mail)
  const plain = Object.entries(facts).flatMap(([name, value]) =>
    ["string", "number"].includes(typeof value) ? `${name.replaceAll("_", " ")}: ${value}` : [],
  )
  const lines = [
    ...plain,
    ...facts.original_recipients.map((email) => `recipient: ${email}`),
    ...facts.recipients.flatMap(recipientLines),
    ...facts.policies.map(policyLine),
    ...facts.records.map(recordLine),
  ]
  const more = lines.length - MOST_LINES
  const shown = lines.slice(0, MOST_LINES).map(cleanLine)
  return more > 0 ? [...shown, `… ${more} more lines`] : shown
}

type DsnFacts = ReportFacts["recipients"][number]

function recipientLines({ email, action, status, diagnostic, remote_mta }: DsnFacts): string[] {
  const words = diagnostic ? [`  ${diagnostic}`] : []
  const at = remote_mta ? [`  at ${remote_mta}`] : []
  return [[email, action, status].filter(Boolean).join("  "), ...words, ...at]
}

const policyLine = (policy: ReportFacts["policies"][number]) => {
  const { policy_domain, successful_sessions: ok, failed_sessions: failed } = policy
  const why = failuresOf([policy])
  return `${policy_domain ?? ""}  ${ok ?? 0} ok  ${failed ?? 0} failed${why ? `  ${why}` : ""}`
}

const recordLine = ({ source_ip, count, disposition, dkim, spf }: ReportFacts["records"][number]) =>
  `${source_ip ?? ""}  ${count ?? 0}  ${disposition ?? ""}  dkim ${dkim ?? ""}  spf ${spf ?? ""}`
