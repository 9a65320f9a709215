import type { Command } from "commander"
import { examples, lazily, several } from "../action"
import { HEADER, IDEMPOTENCY_KEY, LIMIT, METADATA, SINCE, UNTIL } from "../shared-flags"

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
    .action(lazily(async () => (await import("../emails/send")).send))
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
    .action(lazily(async () => (await import("../emails/batch")).batch))
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
    .action(lazily(async () => (await import("../emails/read")).list))
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
      .action(lazily(async () => (await import("../emails/read"))[name]))
  }
  emails
    .command("content <id>")
    .description("show subject, HTML, text and headers")
    .option("--html", "print only the HTML")
    .option("--text", "print only the text")
    .addHelpText("after", examples(`emails content ${ID} --html > mail.html`))
    .action(lazily(async () => (await import("../emails/read")).content))

  emails
    .command("attachment <id> <attachment>")
    .description("write one attachment to a file or into a pipe")
    .option("--save-as <file>", "file to write")
    .addHelpText("after", examples(`emails attachment ${ID} ${ID} --save-as a.pdf`))
    .action(lazily(async () => (await import("../emails/read")).attachment))
}

function defineTail(emails: Command): void {
  emails
    .command("tail [id]")
    .description("follow the events of all email, or of one email until its final status")
    .option(...SINCE)
    .addHelpText("after", examples("emails tail", `emails tail ${ID}`, "emails tail | jq .type"))
    .action(lazily(async () => (await import("../emails/tail")).tail))
}

function defineChanges(emails: Command): void {
  emails
    .command("cancel <id>")
    .description("cancel an email that is still queued")
    .addHelpText("after", examples(`emails cancel ${ID}`))
    .action(lazily(async () => (await import("../emails/send")).cancel))

  emails
    .command("resend <id>")
    .description("send the same content again as a new email")
    .option("--to <address>", "send only to this address (default: all recipients)")
    .option(...IDEMPOTENCY_KEY)
    .addHelpText("after", examples(`emails resend ${ID}`))
    .action(lazily(async () => (await import("../emails/send")).resend))
}
