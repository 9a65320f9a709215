import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import MailComposer from "nodemailer/lib/mail-composer"
import { isMailbox, isName, type Mailbox, parseMailbox, wireForm } from "../lib/address"
import { canonical, isClean } from "../lib/crlf"
import { type AttachedFile, type MailToCompose, Uncomposable } from "./compose"
import { textFromHtml } from "./text-from-html"

/** Above this, quoted-printable takes three times as long as base64. */
const LARGE_BODY = 20_000

/** Runs in the worker. Throws Uncomposable where the result would not be exactly what was asked for. */
export async function composeMail(input: MailToCompose): Promise<Uint8Array> {
  refuseControls(input)
  const html = input.html ? canonical(input.html) : undefined
  const text = canonical(input.text ?? textFromHtml(input.html ?? ""))
  const large = text.length + (html?.length ?? 0) > LARGE_BODY
  const composer = new MailComposer({
    messageId: `<${input.message_id}@${input.domain}>`,
    date: new Date(input.created_at),
    from: asAddress(input.from),
    to: asAddress(input.to),
    ...(input.cc.length > 0 && { cc: input.cc.map(asAddress) }),
    ...(input.reply_to && { replyTo: asAddress(mailbox(input.reply_to)) }),
    subject: input.subject,
    headers: Object.entries(input.headers).map(([key, value]) => ({ key, value })),
    text,
    ...(html !== undefined && { html }),
    attachments: await Promise.all(input.attachments.map(asAttachment)),
    ...(large && { textEncoding: "base64" }),
    newline: "windows",
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const root = composer.compile()
  // The default is random, and a second attempt must send the same bytes as the first.
  Object.assign(root, { baseBoundary: boundaryOf(input) })
  const raw = await root.build()
  if (!isClean(raw)) throw new Uncomposable("the message holds a bare CR, LF or NUL")
  return raw
}

const boundaryOf = ({ message_id }: MailToCompose) =>
  createHash("sha256").update(`boundary ${message_id}`).digest("hex").slice(0, 24)

/** Refused at the edge already. Here is the last place where it can still be seen. */
function refuseControls({ subject, headers, from, to, cc, attachments }: MailToCompose) {
  const named = [from, to, ...cc].flatMap(({ name, email }) => [name ?? "", email])
  const parts = attachments.flatMap((part) => [
    part.filename,
    part.content_type,
    part.content_id ?? "",
  ])
  const lines = [subject, ...Object.entries(headers).flat(), ...named, ...parts]
  const bad = lines.find((line) => !isName(line))
  if (bad !== undefined) throw new Uncomposable(`control character in ${JSON.stringify(bad)}`)
}

function asAddress({ email, name }: Mailbox) {
  if (!isMailbox(email)) throw new Uncomposable(`"${email}" is not one mailbox`)
  return { name: name ?? "", address: wireForm(email) }
}

function mailbox(text: string): Mailbox {
  const found = parseMailbox(text)
  if (!found) throw new Uncomposable(`"${text}" is not one mailbox`)
  return found
}

async function asAttachment({ filename, content_type, content_id, path }: AttachedFile) {
  const content = await readFile(path)
  const type = content_type.trim()
  return {
    filename,
    content,
    // A multipart label would make the composer build a tree of it.
    contentType: /^multipart\//i.test(type) ? "application/octet-stream" : type,
    // RFC 2046, 5.2.1 wants no encoding of a message, but changed bytes would be worse.
    ...(!isClean(content) && { contentTransferEncoding: "base64" as const }),
    ...(content_id
      ? { cid: content_id.replace(/^<|>$/g, ""), contentDisposition: "inline" as const }
      : { contentDisposition: "attachment" as const }),
  }
}
