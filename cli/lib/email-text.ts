import { address, type Email, type EmailEvent } from "./records"
import { type Column, fields, idColumn } from "./table"
import { cleanLine, type Paint } from "./terminal"
import { age, clockTime } from "./time"

const good = ["sent", "delivered"]
const bad = ["bounced", "complained", "failed"]

/** `✓ delivered`, `✗ bounced (NoEmail)`: the mark says the same as the colour. */
export function statusMark(email: Pick<Email, "status" | "status_reason">, paint: Paint): string {
  const { status, status_reason } = email
  const reason = status_reason ? ` (${cleanLine(status_reason)})` : ""
  if (good.includes(status)) return `${paint.green(`✓ ${status}`)}${reason}`
  if (bad.includes(status)) return `${paint.red(`✗ ${status}`)}${reason}`
  return `${paint.yellow(`… ${cleanLine(status)}`)}${reason}`
}

export const paintStatus = (text: string, { status }: { status: string }, paint: Paint): string => {
  if (good.includes(status)) return paint.green(text)
  return bad.includes(status) ? paint.red(text) : paint.yellow(text)
}

export const emailColumns: Column<Email>[] = [
  idColumn("email"),
  { title: "TO", cell: ({ to }) => address(to), flexible: "last" },
  { title: "SUBJECT", cell: ({ subject }) => subject ?? "", flexible: "first" },
  { title: "STATUS", cell: statusCell, paint: paintStatus },
  { title: "TRY", spare: 1, cell: ({ attempts }) => String(attempts) },
  { title: "AGE", cell: ({ created_at }) => age(created_at) },
]

function statusCell({ status }: Email): string {
  return bad.includes(status) ? `${status} ✗` : status
}

export function emailText(email: Email, paint: Paint): string {
  const { error, next_attempt_at } = email
  const head = fields(
    [
      ["id", email.id],
      ["from", address(email.from)],
      ["to", address(email.to)],
      ["subject", email.subject],
      ["provider", email.provider],
      ["attempts", email.attempts],
      ["next try", next_attempt_at ? `${next_attempt_at} (${age(next_attempt_at)})` : null],
      ["error", error ? `${error.code}: ${error.message}` : null],
      ["attached", (email.attachments ?? []).map(({ filename }) => filename).join(", ")],
      ["accepted", `${email.created_at} (${age(email.created_at)} ago)`],
    ],
    paint,
  )
  const lines = (email.timeline ?? []).map(({ type, timestamp, recipient_email }) =>
    eventText({ type, timestamp, recipient_email }, paint),
  )
  return [statusMark(email, paint), head, ...lines].join("\n")
}

type Told = Pick<EmailEvent, "type" | "timestamp" | "recipient_email">

export function eventText({ type, timestamp, recipient_email }: Told, paint: Paint): string {
  const at = paint.dim(clockTime(timestamp))
  return `${at} ${cleanLine(type).padEnd(18)} ${cleanLine(recipient_email ?? "")}`.trimEnd()
}
