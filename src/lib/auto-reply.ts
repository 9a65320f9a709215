import { type FeedbackReport, isComplaint, isFailureReport, readArf } from "./arf"
import { type DmarcReport, readDmarcReport } from "./dmarc-report"
import { type Dsn, readDsn } from "./dsn"
import { firstOf, type SeenMail } from "./seen-mail"
import { readTlsReport, type TlsReport } from "./tls-report"

/** RFC 3834, 5: `auto-replied`, `auto-generated`, `auto-notified` …; null for `no` and without it. */
export function autoSubmitted({ headers }: SeenMail): string | null {
  const [word] =
    /^[a-z][a-z0-9-]{0,49}/.exec(firstOf(headers, "auto-submitted").toLowerCase()) ?? []
  return word === undefined || word === "no" ? null : word
}

/** Fields that only programs which answer set, whatever their value. */
const ANSWERING = [
  "x-autoreply",
  "x-autorespond",
  "x-autoresponder",
  "x-auto-response",
  "x-autoreply-from",
  "x-mail-autoreply",
  "x-vacation",
  "x-amazon-auto-reply",
  "x-ms-exchange-inbox-rules-loop",
]

/**
 * Whether a program answered for its owner: an absence, a receipt, a ticket. Ordinary mail may ask
 * others for silence (`X-Auto-Response-Suppress`), so that field counts only beside a subject or sender
 * that looks like an answer.
 */
function isAutoReply(mail: SeenMail): boolean {
  const { headers } = mail
  const said = autoSubmitted(mail)
  if (said === "auto-replied" || said === "auto-notified") return true
  if (ANSWERING.some((name) => headers[name] && !/^\s*no\b/i.test(firstOf(headers, name)))) {
    return true
  }
  if (/^auto[-_]?reply/i.test(firstOf(headers, "precedence"))) return true
  if (/^auto[-_]?reply/i.test(firstOf(headers, "preference"))) return true
  if (/autoresponder/i.test(firstOf(headers, "x-post-messageclass"))) return true
  if (/^autoresponder\b/i.test(firstOf(headers, "delivered-to"))) return true
  return isReceipt(mail) || SUBJECT.test(firstOf(headers, "subject").slice(0, 200).trim())
}

/** RFC 8098: a program or a click says that a message was displayed. */
const isReceipt = ({ headers, parts }: SeenMail): boolean =>
  /report-type="?disposition-notification/i.test(firstOf(headers, "content-type")) ||
  parts.some(({ content_type }) => content_type.endsWith("disposition-notification"))

/** Written by a program, though nobody's answer: no sender to answer to, or RFC 3834 says so. */
const isGenerated = (mail: SeenMail): boolean =>
  mail.envelope_from === "" ||
  autoSubmitted(mail) !== null ||
  firstOf(mail.headers, "x-fc-machinegenerated").toLowerCase() === "true"

/** A mailing list or a newsletter of one (RFC 2919, RFC 2369). */
function isList({ headers }: SeenMail): boolean {
  if (headers["list-id"] || headers["list-post"] || headers["mailing-list"]) return true
  if (headers["x-mailing-list"]) return true
  return /^list\b/i.test(firstOf(headers, "precedence"))
}

/** How the subject of an absence or a receipt begins, in the languages of the usual mail programs. */
const SUBJECT = new RegExp(
  [
    "auto(?:matic)?[- ]?(?:re(?:ply|sponse)|answer)",
    "auto:",
    "out of (?:the )?office",
    "i(?:'|’)?m out of (?:the )?office",
    "ooo:",
    "vacation (?:auto|reply|notice|response|message)",
    "away from (?:the|my) (?:office|mail|desk)",
    "automatische (?:antwort|e-?mail-?antwort)",
    "abwesenheits(?:notiz|meldung|nachricht|assistent|agent)",
    "(?:ich bin )?(?:nicht im (?:büro|haus)|außer haus)\\b",
    "abwesend(?:heit)?:",
    "abwesenheit:",
    "réponse automatique",
    "absence du bureau",
    "message d['’]absence",
    "respuesta automática",
    "fuera de (?:la )?oficina",
    "ausencia de oficina",
    "risposta automatica",
    "fuori (?:sede|ufficio)",
    "resposta automática",
    "ausência temporária",
    "automatisch (?:antwoord|bericht)",
    "afwezig(?:heid)?(?:sbericht)?:",
    "autosvar",
    "automatisk[t]? svar",
    "frånvaro",
    "fravær",
    "automaattinen vastaus",
    "poissaolo",
    "automatyczna odpowiedź",
    "odpowiedź automatyczna",
    "automatická odpov[ěe]ď",
    "automatikus válasz",
    "răspuns automat",
    "otomatik yanıt",
    "αυτόματη απάντηση",
    "автоответ",
    "автоматический ответ",
    "автоматична відповідь",
    "自动(?:回复|答复)",
    "自動(?:回覆|応答|返信)",
    "자동 ?(?:회신|응답)",
    "부재중",
    "رد تلقائي",
    "מענה אוטומטי",
  ]
    .map((start) => `^\\[?(?:${start})`)
    .join("|"),
  "iu",
)

/** What a received mail is, with what it reports. `other` is what a person wrote to someone. */
export type MailKind =
  | { kind: "bounce"; dsn: Dsn }
  | { kind: "complaint"; arf: FeedbackReport }
  | { kind: "dmarc_report"; report: DmarcReport | FeedbackReport }
  | { kind: "tls_report"; report: TlsReport }
  | { kind: "auto_reply" | "list" | "other" }

/**
 * Reports come first, because their writers also mark them as automatic. An answer of a program comes
 * before the list, whose fields some of them repeat. Never throws.
 */
export function classify(mail: SeenMail): MailKind {
  const arf = readArf(mail)
  if (arf && isComplaint(arf)) return { kind: "complaint", arf }
  if (arf && isFailureReport(arf)) return { kind: "dmarc_report", report: arf }
  const dsn = arf ? undefined : readDsn(mail)
  if (dsn) return { kind: "bounce", dsn }
  const dmarc = readDmarcReport(mail)
  if (dmarc) return { kind: "dmarc_report", report: dmarc }
  const tls = readTlsReport(mail)
  if (tls) return { kind: "tls_report", report: tls }
  if (arf || isAutoReply(mail)) return { kind: "auto_reply" }
  if (isList(mail)) return { kind: "list" }
  return { kind: isGenerated(mail) ? "auto_reply" : "other" }
}
