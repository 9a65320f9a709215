import type { Command } from "commander"
import { examples, lazily, SINCE, several, UNTIL } from "../action"

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
    .description("send one email; `-` as a file reads stdin")
    .option("--to <address>", "recipient, plain or as `Ann <ann@example.test>`")
    .option("--from <address>", "sender")
    .option("--cc <address>", "copy; may be repeated", several)
    .option("--bcc <address>", "blind copy; may be repeated", several)
    .option("--subject <text>", "subject")
    .option("--text <text>", "plain text body; `-` reads stdin")
    .option("--html <html>", "HTML body; `-` reads stdin")
    .option("--text-file <file>", "plain text body from a file")
    .option("--html-file <file>", "HTML body from a file")
    .option("--attach <file...>", "attach files")
    .option("--reply-to <address>", "where answers go")
    .option("--tag <tag>", "label; may be repeated", several)
    .option("--metadata <pair>", "k=v, or a JSON object; may be repeated", several)
    .option("--header <header>", "further header as `Name: value`; may be repeated", several)
    .option("--file <file>", "JSON body as for POST /v1/emails; the other options go on top")
    .option("--idempotency-key <key>", "the same key twice sends once")
    .option("--wait", "follow it until it is settled; exit 1 if it does not arrive")
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
    .option("--strict", "refuse them all if one is wrong")
    .option("--idempotency-key <key>", "the same key twice sends once")
    .addHelpText(
      "after",
      examples("emails batch messages.json", "emails batch - < messages.ndjson"),
    )
    .action(lazily(async () => (await import("../emails/batch")).batch))
}

function defineList(emails: Command): void {
  emails
    .command("list")
    .description("emails, newest first")
    .option("--status <status>", "queued, sending, sent, delivered, bounced, complained or failed")
    .option("--to <address>", "only to this address")
    .option("--from <address>", "only from this address")
    .option("--tag <tag>", "only with this tag")
    .option("--domain <domain>", "only from this domain")
    .option("--subject <text>", "only with this subject")
    .option("--batch <id>", "only of this batch")
    .option(...SINCE)
    .option(...UNTIL)
    .option("--limit <number>", "how many (default: 25)")
    .addHelpText("after", examples("emails list --status bounced --json=id,to.email,status_reason"))
    .action(lazily(async () => (await import("../emails/read")).list))
}

function defineReads(emails: Command): void {
  const reads = [
    ["get", "one email with its timeline"],
    ["events", "what happened to one email, oldest first"],
    ["attempts", "every try to hand it over, with the server's words"],
    ["raw", "the message as it was sent (RFC 5322)"],
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
    .description("subject, HTML, text and headers")
    .option("--html", "print the HTML itself")
    .option("--text", "print the text itself")
    .addHelpText("after", examples(`emails content ${ID} --html > mail.html`))
    .action(lazily(async () => (await import("../emails/read")).content))

  emails
    .command("attachment <id> <attachment>")
    .description("one attachment, to a file or into a pipe")
    .option("--save-as <file>", "where to write it")
    .addHelpText("after", examples(`emails attachment ${ID} ${ID} --save-as a.pdf`))
    .action(lazily(async () => (await import("../emails/read")).attachment))
}

function defineTail(emails: Command): void {
  emails
    .command("tail [id]")
    .description("follow what happens, of all email or of one until it is settled")
    .option(...SINCE)
    .addHelpText("after", examples("emails tail", `emails tail ${ID}`, "emails tail | jq .type"))
    .action(lazily(async () => (await import("../emails/tail")).tail))
}

function defineChanges(emails: Command): void {
  emails
    .command("cancel <id>")
    .description("stop an email that is still queued")
    .addHelpText("after", examples(`emails cancel ${ID}`))
    .action(lazily(async () => (await import("../emails/send")).cancel))

  emails
    .command("resend <id>")
    .description("send the same content again, as a new email")
    .option("--to <address>", "to this address alone; without it everybody gets it again")
    .option("--idempotency-key <key>", "the same key twice sends once")
    .addHelpText("after", examples(`emails resend ${ID}`))
    .action(lazily(async () => (await import("../emails/send")).resend))
}
