import { writeFileSync } from "node:fs"
import type { Command } from "commander"
import type { Action } from "../lib/context"
import { emailColumns, emailText, eventText, statusMark } from "../lib/email-text"
import { exits, Failure, usage } from "../lib/errors"
import {
  FIRST_EMAIL,
  HEADER,
  IDEMPOTENCY_KEY,
  LIMIT,
  METADATA,
  optionWords,
  SINCE,
  UNTIL,
} from "../lib/flags"
import { limitOf, listUpTo } from "../lib/paging"
import type { Attempt, Content, Email, EmailEvents } from "../lib/records"
import { examples, run, several } from "../lib/run"
import type { Column } from "../lib/table"
import { cleanLine, cleanText } from "../lib/terminal"
import { moment } from "../lib/time"
import { tail } from "./emails-follow"
import { batch, cancel, resend, send } from "./emails-send"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Sending, reading and following email. */
export function define(program: Command): void {
  const emails = program
    .command("emails")
    .description("send, read and follow email")
    .addHelpText("after", examples("emails list", "emails tail"))
  defineSend(emails)
  defineBatch(emails)
  defineList(emails)
  defineReads(emails)
  defineTail(emails)
  defineChanges(emails)
}

function defineSend(emails: Command): void {
  emails
    .command("send")
    .description("send one email; a file named `-` is stdin")
    .option("--to <address>", "recipient: an address, or `Ann <ann@example.test>`")
    .option("--from <address>", "sender: an address, or `Ann <ann@example.test>`")
    .option("--cc <address>", "recipient of a copy; may be repeated", several)
    .option("--bcc <address>", "recipient of a hidden copy; may be repeated", several)
    .option("--subject <text>", "subject of the email")
    .option("--text <text>", "plain text body; `-` reads stdin")
    .option("--html <html>", "HTML body; `-` reads stdin")
    .option("--text-file <file>", "file with the plain text body")
    .option("--html-file <file>", "file with the HTML body")
    .option("--attach <file...>", "files to attach")
    .option("--reply-to <address>", "address that gets the answers")
    .option("--tag <tag>", "label of the email; may be repeated", several)
    .option(...METADATA, several)
    .option(...HEADER, several)
    .option("--file <file>", "JSON body of POST /v1/emails; other flags replace its fields")
    .option(...IDEMPOTENCY_KEY)
    .option(
      "--wait",
      "wait for the final status; exit 1 if it is not sent by --timeout (default: 60s)",
    )
    .addHelpText(
      "after",
      examples(
        "emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --text hello",
        "emails send --to ann@mailbox.test --from me@mailbox.test --subject Log --text-file - < log",
        "emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --html-file hi.html --wait",
      ),
    )
    .action(run(send))
}

function defineBatch(emails: Command): void {
  emails
    .command("batch <file>")
    .description("send up to 100 emails from a JSON array or NDJSON; exit 8 if some are refused")
    .option("--strict", "refuse all emails if one is not valid")
    .option(...IDEMPOTENCY_KEY)
    .addHelpText(
      "after",
      examples("emails batch messages.json", "emails batch - < messages.ndjson"),
    )
    .action(run(batch))
}

function defineList(emails: Command): void {
  emails
    .command("list")
    .description("list the emails, newest first")
    .option(
      "--status <status>",
      "show only this status: queued, sending, sent, delivered, bounced, complained or failed",
    )
    .option("--to <address>", "show only mail to this address")
    .option("--from <address>", "show only mail from this address")
    .option("--tag <tag>", "show only mail with this tag")
    .option("--domain <domain>", "show only mail from this domain")
    .option("--subject <text>", "show only mail with this text in the subject")
    .option("--batch <id>", "show only mail of this batch")
    .option(...SINCE)
    .option(...UNTIL)
    .option(...LIMIT)
    .addHelpText("after", examples("emails list --status bounced --json=id,to.email,status_reason"))
    .action(run(list))
}

function defineReads(emails: Command): void {
  const reads = [
    ["get", "show one email with its timeline"],
    ["events", "list the events of one email, oldest first"],
    ["attempts", "list the delivery attempts of one email, with the servers' answers"],
    ["raw", "print the message as it was sent (RFC 5322)"],
  ] as const
  for (const [name, about] of reads) {
    emails
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`emails ${name} ${ID}`))
      .action(run({ get, events, attempts, raw }[name]))
  }
  emails
    .command("content <id>")
    .description("show subject, HTML, text and headers")
    .option("--html", "print only the HTML")
    .option("--text", "print only the text")
    .addHelpText("after", examples(`emails content ${ID} --html > mail.html`))
    .action(run(content))

  emails
    .command("attachment <id> <attachment>")
    .description("write one attachment to a file or into a pipe")
    .option("--save-as <file>", "file to write")
    .addHelpText("after", examples(`emails attachment ${ID} ${ID} --save-as a.pdf`))
    .action(run(attachment))
}

function defineTail(emails: Command): void {
  emails
    .command("tail [id]")
    .description("follow the events of all email, or of one email until its final status")
    .option(...SINCE)
    .addHelpText("after", examples("emails tail", `emails tail ${ID}`, "emails tail | jq .type"))
    .action(run(tail))
}

function defineChanges(emails: Command): void {
  emails
    .command("cancel <id>")
    .description("cancel an email that is still queued")
    .addHelpText("after", examples(`emails cancel ${ID}`))
    .action(run(cancel))

  emails
    .command("resend <id>")
    .description("send the same content again as a new email")
    .option("--to <address>", "send only to this address (default: all recipients)")
    .option(...IDEMPOTENCY_KEY)
    .addHelpText("after", examples(`emails resend ${ID}`))
    .action(run(resend))
}

interface ListOptions {
  status?: string
  to?: string
  from?: string
  tag?: string
  domain?: string
  subject?: string
  batch?: string
  since?: string
  until?: string
  limit?: string
}

export const list: Action<ListOptions> = async (context, options) => {
  const { status, to, from, tag, domain, subject, batch, since, until, limit } = options
  const query = {
    status,
    to,
    from,
    tag,
    domain,
    subject,
    batch_id: batch,
    created_after: since === undefined ? undefined : moment(since, "--since"),
    created_before: until === undefined ? undefined : moment(until, "--until"),
  }
  const found = await listUpTo<Email>(context.client(), "/v1/emails", query, limitOf(limit))
  await context.output.list(found.rows, emailColumns)
  const more = optionWords({ ...options, limit: String(2 * limitOf(limit)) })
  if (found.more) await context.output.next(`belfry emails list${more}`)
  else if (found.rows[0]) await context.output.next(`belfry emails get ${found.rows[0].id}`)
  else if (optionWords({ ...options, limit: undefined }) === "") {
    await context.output.next(FIRST_EMAIL)
  }
  return undefined
}

const pathOf = (id: string) => `/v1/emails/${encodeURIComponent(id)}`

export const get: Action<object> = async (context, _, id = "") => {
  const { data } = await context.client().get<Email>(pathOf(id))
  await context.output.record(data, () => emailText(data, context.paint))
  await context.output.next(`belfry emails attempts ${data.id}`)
  return undefined
}

export const events: Action<object> = async (context, _, id = "") => {
  const { output, paint } = context
  const { data } = await context.client().get<EmailEvents>(`${pathOf(id)}/events`)
  if (output.form === "ndjson" || output.form === "quiet") {
    for (const event of data.events) await output.line(event, () => "")
    return undefined
  }
  await output.record(data, () => {
    const lines = data.events.map((event) => eventText(event, paint))
    return [statusMark({ status: data.status, status_reason: null }, paint), ...lines].join("\n")
  })
  return undefined
}

const attemptColumns: Column<Attempt>[] = [
  { title: "TRY", cell: ({ attempt }) => String(attempt) },
  { title: "AT", cell: ({ started_at }) => started_at },
  { title: "TOOK", cell: ({ duration_ms }) => `${duration_ms} ms` },
  { title: "OUTCOME", cell: ({ outcome }) => outcome },
  { title: "SERVER", cell: ({ mx, provider }) => mx ?? provider, flexible: true },
  { title: "ANSWER", cell: ({ response }) => response ?? "", flexible: true },
]

export const attempts: Action<object> = async (context, _, id = "") => {
  const { data } = await context.client().get<Attempt[]>(`${pathOf(id)}/attempts`)
  await context.output.list(data, attemptColumns)
  return undefined
}

/** The bytes as they were sent; on a terminal without what could move the cursor. */
export const raw: Action<object> = async (context, _, id = "") => {
  const bytes = await context.client().bytes(`${pathOf(id)}/raw`)
  const shown = context.terminal.out ? cleanText(new TextDecoder().decode(bytes)) : bytes
  await context.output.raw(shown)
  return undefined
}

interface ContentOptions {
  html?: boolean
  text?: boolean
}

export const content: Action<ContentOptions> = async (context, options, id = "") => {
  const { output, paint, terminal } = context
  const { data } = await context.client().get<Content>(`${pathOf(id)}/content`)
  if (options.html || options.text) {
    const part = (options.html ? data.html : data.text) ?? ""
    await output.raw(terminal.out ? `${cleanText(part)}\n` : part)
    return undefined
  }
  await output.record(data, () =>
    [paint.bold(cleanLine(data.subject ?? "")), "", cleanText(data.text ?? "")].join("\n"),
  )
  return undefined
}

interface AttachmentOptions {
  saveAs?: string
}

export const attachment: Action<AttachmentOptions> = async (
  context,
  { saveAs: path },
  id = "",
  attachment_id = "",
) => {
  const { output, paint, terminal } = context
  if (path === undefined && terminal.out) {
    throw usage("an attachment is not written to a terminal", "name a file with --save-as")
  }
  const address = `${pathOf(id)}/attachments/${encodeURIComponent(attachment_id)}`
  const bytes = await context.client().bytes(address)
  if (path === undefined) {
    await output.raw(bytes)
    return undefined
  }
  try {
    writeFileSync(path, bytes)
  } catch (error) {
    throw new Failure(exits.storage, "storage", `${path} cannot be written: ${String(error)}`)
  }
  const record = { id: attachment_id, path, size: bytes.length }
  await output.record(record, () => `${paint.green("✓")} ${path} (${bytes.length} bytes)`)
  return undefined
}
