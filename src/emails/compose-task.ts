import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import MailComposer from "nodemailer/lib/mail-composer"
import { isMailbox, isName } from "../lib/address"
import { pack } from "../lib/compression"
import { countFields } from "../lib/mail-head"
import { canonical, isClean } from "../lib/mail-lines"
import type { Composed, ComposedMail } from "./compose-batches"
import { composePlain, headOf } from "./compose-plain"
import { type AttachedFile, type MailToCompose, Uncomposable } from "./mail-to-compose"
import { signed } from "./signed"
import { textFromHtml } from "./text-from-html"

/** RFC 5322, 2.2. */
const FIELD_NAME = /^[!-9;-~]+$/

/** From, To, Subject, Message-ID, Date, MIME-Version. */
const ALWAYS = 6

/** Above this, quoted-printable takes three times as long as base64. */
const LARGE_BODY = 20_000

/** Runs in the worker. Throws Uncomposable where the result would not be exactly what was asked for. */
export async function composeMail(input: MailToCompose): Promise<Uint8Array> {
  refuseControls(input)
  const html = input.html ? canonical(input.html) : undefined
  const text = canonical(input.text ?? textFromHtml(input.html ?? ""))
  const bodies = { text, html }
  const raw =
    input.attachments.length === 0
      ? composePlain(input, bodies, boundaryOf(input))
      : await composeWithFiles(input, bodies)
  if (!isClean(raw)) throw new Uncomposable("the message holds a bare CR, LF or NUL")
  demandFields(raw, input)
  return signed(raw, input.dkim, Math.floor(Date.parse(input.created_at) / 1000))
}

/** As `composeMail`, with the form in which it is kept. */
export async function composeAndPack(mail: MailToCompose): Promise<ComposedMail> {
  const raw = await composeMail(mail)
  return { raw, packed: pack(raw) }
}

/** As `composeAndPack` for each; what goes wrong with one is told beside what became of the others. */
export async function composeAll(mails: MailToCompose[]): Promise<Composed[]> {
  const all: Composed[] = []
  for (const mail of mails) {
    try {
      all.push(await composeAndPack(mail))
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error))
      all.push({ error: { name, message } })
    }
  }
  return all
}

/** The content by the general composer, which knows how to nest, name and encode files. */
async function composeWithFiles(
  input: MailToCompose,
  { text, html }: { text: string; html: string | undefined },
): Promise<Buffer> {
  const large = text.length + (html?.length ?? 0) > LARGE_BODY
  const composer = new MailComposer({
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
  const built = await root.build()
  const end = built.indexOf("\r\n\r\n")
  const fields = built.toString("utf8", 0, end).split(/\r\n(?![ \t])/)
  const own = fields.filter((field) => /^content-/i.test(field)).map((field) => `${field}\r\n`)
  return Buffer.concat([Buffer.from(headOf(input) + own.join("")), built.subarray(end + 2)])
}

/** Not one field more or less than was asked for. Those of the content follow from the parts. */
function demandFields(raw: Uint8Array, { cc, reply_to, headers }: MailToCompose) {
  const own = Object.keys(headers).filter((name) => !/^content-/i.test(name)).length
  const asked = ALWAYS + Number(cc.length > 0) + Number(reply_to.length > 0) + own
  const found = countFields(raw)
  if (found !== asked) throw new Uncomposable(`${found} header fields instead of ${asked}`)
}

const boundaryOf = ({ message_id }: MailToCompose) =>
  createHash("sha256").update(`boundary ${message_id}`).digest("hex").slice(0, 24)

/** Refused at the edge already. Here is the last place where it can still be seen. */
function refuseControls(mail: MailToCompose) {
  const { subject, headers, from, to, cc, reply_to, attachments } = mail
  const named = [from, to, ...cc, ...reply_to].flatMap(({ name, email }) => [name ?? "", email])
  const parts = attachments.flatMap((part) => [
    part.filename,
    part.content_type,
    part.content_id ?? "",
  ])
  const lines = [subject, ...Object.entries(headers).flat(), ...named, ...parts]
  const bad = lines.find((line) => !isName(line))
  if (bad !== undefined) throw new Uncomposable(`control character in ${JSON.stringify(bad)}`)
  const odd = Object.keys(headers).find((name) => !FIELD_NAME.test(name))
  if (odd !== undefined)
    throw new Uncomposable(`${JSON.stringify(odd)} is not the name of a header field`)
  const unfit = [from, to, ...cc, ...reply_to].find(({ email }) => !isMailbox(email))
  if (unfit) throw new Uncomposable(`"${unfit.email}" is not one email address`)
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
