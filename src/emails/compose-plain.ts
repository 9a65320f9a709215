import { type Mailbox, wireForm } from "../lib/address"
import { encodedBody, mailboxField, textField } from "../lib/mime"
import type { MailToCompose } from "./mail-to-compose"

/**
 * A message without attachments: text, or text and html. It is nearly all mail, and the general
 * composer takes ten times as long for it. `boundary` must be the message's own.
 */
export function composePlain(
  mail: MailToCompose,
  { text, html }: { text: string; html: string | undefined },
  boundary: string,
): Buffer {
  const head = headOf(mail)
  if (html === undefined) {
    const body = bodyPart("plain", text)
    return Buffer.from(`${head}${body}${body.endsWith("\r\n") ? "" : "\r\n"}`)
  }
  const type = `Content-Type: multipart/alternative;\r\n boundary="${boundary}"\r\n\r\n`
  const parts = [bodyPart("plain", text), bodyPart("html", html)]
  const body = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("")
  return Buffer.from(`${head}${type}${body}--${boundary}--\r\n`)
}

/** Every field but those of the content. */
export function headOf(mail: MailToCompose): string {
  const { message_id, domain, created_at, from, to, cc, reply_to, subject, headers } = mail
  const fields = [
    mailboxField("From", [wired(from)]),
    mailboxField("To", [wired(to)]),
    cc.length > 0 ? mailboxField("Cc", cc.map(wired)) : "",
    reply_to.length > 0 ? mailboxField("Reply-To", reply_to.map(wired)) : "",
    textField("Subject", subject),
    `Message-ID: <${message_id}@${domain}>\r\n`,
    `Date: ${new Date(created_at).toUTCString().replace("GMT", "+0000")}\r\n`,
    "MIME-Version: 1.0\r\n",
    ...Object.entries(headers).map(([name, value]) => textField(name, value)),
  ]
  return fields.join("")
}

function bodyPart(subtype: "plain" | "html", source: string): string {
  const { encoding, text } = encodedBody(source)
  const type = `Content-Type: text/${subtype}; charset=utf-8\r\n`
  return `${type}Content-Transfer-Encoding: ${encoding}\r\n\r\n${text}`
}

const wired = ({ email, name }: Mailbox) => ({ name: name ?? "", address: wireForm(email) })
