import { exits, Failure } from "./errors"
import { address, type Mail, type MailSummary } from "./records"
import { type Column, fields, idColumn } from "./table"
import { cleanText, type Paint } from "./terminal"
import { age, moment } from "./time"

export const POLL = 200
export const DEFAULT_WAIT = 30_000

export interface Filters {
  to?: string
  from?: string
  search?: string
  subject?: string
  since?: string
  limit?: string
}

export const columns: Column<MailSummary>[] = [
  idColumn("mail"),
  { title: "FROM", cell: ({ from }) => address(from), flexible: "first" },
  { title: "TO", cell: ({ to }) => address(to), flexible: "last" },
  { title: "SUBJECT", cell: ({ subject }) => subject ?? "", flexible: "first" },
  { title: "AGE", cell: ({ created_at }) => age(created_at) },
]

export const queryOf = ({ to, from, search, since }: Filters) => ({
  to,
  from,
  search,
  since: since === undefined ? undefined : moment(since, "--since"),
})

export function shown(mail: Mail, paint: Paint): string {
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

export function noMail(options: Filters, limit: number, hint: string): Failure {
  const { to, from, subject } = options
  const where = [`to ${to}`, from && `from ${from}`, subject && `with "${subject}" in its subject`]
  const message = `No mail ${where.filter(Boolean).join(" ")} came within ${limit / 1000} s.`
  return new Failure(exits.failed, "timeout", message, { details: { to, limit_ms: limit }, hint })
}
