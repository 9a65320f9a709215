import { type FeedbackReport, isComplaint, isFailureReport, readArf } from "./arf"
import { isAutoReply, isGenerated, isList } from "./auto-reply"
import { type DmarcReport, readDmarcReport } from "./dmarc-report"
import { type Dsn, readDsn } from "./dsn"
import type { SeenMail } from "./seen-mail"
import { readTlsReport, type TlsReport } from "./tls-report"

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
