import type { Components } from "../../src/client/components"
import { address } from "./email-text"
import { exits, Failure } from "./errors"
import { given } from "./input"
import { ago, type Columns, fields, idColumn, wide } from "./table"
import { cleanText, type Paint } from "./terminal"
import { moment } from "./time"

export const POLL_MILLISECONDS = 200
export const MAIL_WAIT_MILLISECONDS = 30_000

export interface MailFilters {
  to?: string
  from?: string
  search?: string
  subject?: string
  since?: string
  limit?: string
}

type MailSummary = Components["MailboxMailSummary"]
type Mail = Omit<Components["MailboxMail"], "headers" | "parse_error" | "raw_url">

export const mailColumns: Columns<MailSummary> = {
  ID: idColumn("mail"),
  FROM: wide(({ from }) => address(from), "first"),
  TO: wide(({ to }) => address(to), "last"),
  SUBJECT: wide(({ subject }) => subject, "first"),
  AGE: ago(({ created_at }) => created_at),
}

export const mailQuery = ({ to, from, search, since }: MailFilters) =>
  given({ to, from, search, since: since && moment(since, "--since") })

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

export function noMail(options: MailFilters, limit: number, hint: string): Failure {
  const { to, from, subject } = options
  const where = [`to ${to}`, from && `from ${from}`, subject && `with "${subject}" in its subject`]
  const message = `No mail ${where.filter(Boolean).join(" ")} came within ${limit / 1000} s.`
  return new Failure(exits.failed, "timeout", message, { details: { to, limit_ms: limit }, hint })
}
