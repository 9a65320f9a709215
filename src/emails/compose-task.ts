import { createHash, createPrivateKey, type KeyObject } from "node:crypto"
import { readFile } from "node:fs/promises"
import MailComposer from "nodemailer/lib/mail-composer"
import { signRsa } from "../core/rsa"
import { isMailbox, isName, type Mailbox, wireForm } from "../lib/address"
import { type DkimSigner, sign, signable } from "../lib/dkim"
import { canonical, countFields, isClean } from "../lib/mail-text"
import { encodedBody, mailboxField, textField } from "../lib/mime"
import { textFromHtml } from "../lib/text-from-html"
import { sevenBit } from "../lib/transport-encoding"
import { type HtmlTracking, trackedHtml, trackedMessage } from "../tracking/tracked-html"
import { textsAt } from "./filed-content"
import { ChangedBytes, HASH_BYTES, type Recipe } from "./recipe"

export interface MailToCompose {
  message_id: string
  /** Right-hand side of the Message-ID: the domain of `from`. */
  domain: string
  created_at: string
  from: Mailbox
  to: Mailbox
  cc: Mailbox[]
  reply_to: Mailbox[]
  subject: string
  text: string | null
  html: string | null
  /** The file that both are in, where they are long. */
  texts_path?: string
  headers: Record<string, string>
  attachments: AttachedFile[]
  /** Of the html: pixel and links. */
  track?: HtmlTracking | undefined
  /** Each signs the message, in this order; empty for a sender without keys. */
  dkim: SigningKey[]
  /** How the message left before: it is composed as it was then, and gets no other signatures. */
  recipe?: Recipe
}

/**
 * What was asked for can never become a message. Everything else that goes wrong while composing is
 * a fault of this machine, which another try may not meet. The name survives the way out of a thread.
 */
export class Uncomposable extends Error {
  override readonly name = "Uncomposable"
}

interface AttachedFile {
  filename: string
  content_type: string
  /** Makes the part inline, for `cid:` links of the html. */
  content_id: string | null
  /** Of the blob's file, which the worker reads. */
  path: string
}

/** A key as it travels to the thread that signs. */
export interface SigningKey extends Omit<DkimSigner, "key" | "time" | "rsa"> {
  /** PKCS #8 PEM. */
  private_key: string
}

/** A message that has its bytes already: it is only signed. */
export interface MailToSign
  extends Pick<MailToCompose, "message_id" | "created_at" | "dkim" | "recipe"> {
  /** Themselves, or the path of the file that holds them. */
  bytes: Uint8Array | string
  /** Header fields that go before the bytes, with their line ends. */
  fields: string
  /** Of html in the bytes. */
  track?: HtmlTracking | undefined
}

export type MailToMake = MailToCompose | MailToSign

/** With what a message is signed anew. */
export type SigningFacts = Pick<MailToCompose, "dkim" | "created_at">

/** A message that was signed already. */
interface MailToNarrow extends SigningFacts {
  raw: Uint8Array
}

/** A message as it leaves, and what is kept of it. */
export interface ComposedMail {
  raw: Uint8Array
  recipe: Required<Recipe>
}

/** RFC 5322, 2.2. */
const FIELD_NAME = /^[!-9;-~]+$/

/** From, To, Subject, Message-ID, Date, MIME-Version. */
const ALWAYS = 6

/** Above this, quoted-printable takes three times as long as base64. */
const LARGE_BODY = 20_000

/**
 * Every version whose recipes may still be kept. A change of what one makes is a new version: the one before
 * stays beside it, as it was, until a release is older than the longest `bodies_days`. Mail of a fan-out is
 * rendered again as well: `test/templates/helpers.test.ts` pins what it says.
 */
const COMPOSERS: Record<number, (mail: MailToMake) => Promise<Uint8Array>> = {
  1: (mail) => ("bytes" in mail ? fromBytes(mail) : fromParts(mail)),
}

/** The version that composes new mail. */
export const COMPOSER = 1

/**
 * Composes and signs, or composes again by the recipe. Throws Uncomposable where the result would not be
 * exactly what was asked for, and ChangedBytes where it is not what left before.
 */
export async function composeMail(mail: MailToMake): Promise<ComposedMail> {
  const { dkim, created_at, recipe } = mail
  const version = recipe?.version ?? COMPOSER
  const unsigned = await COMPOSERS[version]?.(mail)
  if (!unsigned) throw new ChangedBytes(`no composer has the version ${version}`)
  const raw = recipe
    ? Buffer.concat([recipe.signatures, unsigned])
    : signed(unsigned, dkim, Math.floor(Date.parse(created_at) / 1000))
  const hash = (Bun.SHA256.hash(raw) as Uint8Array).subarray(0, HASH_BYTES)
  if (recipe?.hash && Buffer.compare(recipe.hash, hash) !== 0)
    throw new ChangedBytes("the composed bytes are not those that left before")
  const signatures = raw.subarray(0, raw.length - unsigned.length)
  // A copy: a thread hands over the whole memory behind a part.
  return { raw, recipe: { version, hash, signatures: new Uint8Array(signatures) } }
}

async function fromParts(given: MailToCompose): Promise<Uint8Array> {
  const { texts_path: path } = given
  const input = path === undefined ? given : { ...given, ...(await textsAt(path)) }
  refuseControls(input)
  const { html: source, track } = input
  const html = source ? canonical(track ? trackedHtml(source, track) : source) : undefined
  const text = canonical(input.text ?? textFromHtml(input.html ?? ""))
  const bodies = { text, html }
  const raw =
    input.attachments.length === 0
      ? composePlain(input, bodies)
      : await composeWithFiles(input, bodies)
  if (!isClean(raw)) throw new Uncomposable("the message holds a bare CR, LF or NUL")
  requireFields(raw, input)
  return raw
}

async function fromBytes({ bytes, fields, track }: MailToSign): Promise<Uint8Array> {
  const submitted = typeof bytes === "string" ? await readFile(bytes) : bytes
  if (!isClean(submitted)) throw new Uncomposable("the message holds a bare CR, LF or NUL")
  const tracked = track ? trackedMessage(submitted, track) : submitted
  return Buffer.concat([Buffer.from(fields), tracked])
}

const OWN_SIGNATURES = /^(?:dkim-signature:.*\r\n(?:[ \t].*\r\n)*)+/i

/** A signed message, its bodies in 7 bits, under new signatures in the place of its first ones. */
export function composeSevenBit({ raw: given, dkim, created_at }: MailToNarrow): Uint8Array {
  const raw = Buffer.from(given.buffer, given.byteOffset, given.byteLength)
  const end = raw.indexOf("\r\n\r\n") + 2
  const signatures = OWN_SIGNATURES.exec(raw.toString("latin1", 0, end))?.[0].length ?? 0
  const unsigned = new Uint8Array(sevenBit(raw.subarray(signatures)))
  return signed(unsigned, dkim, Math.floor(Date.parse(created_at) / 1000))
}

interface Bodies {
  text: string
  html: string | undefined
}

/** The content by the general composer, which knows how to nest, name and encode files. */
async function composeWithFiles(input: MailToCompose, { text, html }: Bodies): Promise<Buffer> {
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
function requireFields(raw: Uint8Array, { cc, reply_to, headers }: MailToCompose) {
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

/** Nearly all mail. The general composer takes ten times as long for it. */
function composePlain(mail: MailToCompose, { text, html }: Bodies): Buffer {
  const head = headOf(mail)
  if (html === undefined) {
    const body = bodyPart("plain", text)
    return Buffer.from(`${head}${body}${body.endsWith("\r\n") ? "" : "\r\n"}`)
  }
  const boundary = boundaryOf(mail)
  const type = `Content-Type: multipart/alternative;\r\n boundary="${boundary}"\r\n\r\n`
  const parts = [bodyPart("plain", text), bodyPart("html", html)]
  const body = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("")
  return Buffer.from(`${head}${type}${body}--${boundary}--\r\n`)
}

/** Every field but those of the content. */
function headOf(mail: MailToCompose): string {
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

const MAX_KEYS = 200

/** Reading a key takes half as long as signing with it, so the last ones used stay open. */
const opened = new Map<string, KeyObject>()

/**
 * The message with one DKIM-Signature for each key before it, as of `time` (seconds since 1970).
 * Throws Uncomposable where the result is not exactly that.
 */
export function signed(raw: Uint8Array, keys: SigningKey[], time: number): Uint8Array {
  if (keys.length === 0) return raw
  const message = signable(raw)
  const fields = keys.map(({ private_key, ...key }) =>
    sign(message, { ...key, time, key: open(private_key), rsa: signRsa }),
  )
  const head = Buffer.from(fields.join(""), "latin1")
  const lines = head.toString("latin1").match(/^DKIM-Signature: /gm)?.length
  if (lines !== keys.length || !isClean(head)) {
    throw new Uncomposable(`${lines} signatures instead of ${keys.length}`)
  }
  const whole = Buffer.allocUnsafeSlow(head.length + raw.length)
  whole.set(head)
  whole.set(raw, head.length)
  return whole
}

function open(private_key: string): KeyObject {
  const known = opened.get(private_key)
  const key = known ?? createPrivateKey(private_key)
  opened.delete(private_key)
  opened.set(private_key, key)
  const oldest = opened.keys().next().value
  if (opened.size > MAX_KEYS && oldest !== undefined) opened.delete(oldest)
  return key
}
