import { readFile } from "node:fs/promises"
import { type Blobs, blobsIn } from "../core/blobs"
import type { Mailbox } from "../lib/address"
import { readAddressList } from "../lib/address-list"
import { autoSubmitted, classify, type MailKind } from "../lib/auto-reply"
import { returnedHeaders } from "../lib/dsn"
import { encodedFields, hasLongHead } from "../lib/mail-text"
import {
  contentOf,
  isFile,
  isTooComplex,
  type MailLeaf,
  type MailTree,
  readTree,
} from "../lib/mail-tree"
import { firstOf, type HeaderLists, seenMail, storable } from "../lib/seen-mail"
import { strippedText } from "../lib/stripped-text"
import { textFromHtml } from "../lib/text-from-html"
import { isTooLong } from "./inbound-record"
import { type SpamScore, type SpamVerdicts, spamScore } from "./spam-score"
import type { InboundContent, InboundFile, StoredElsewhere } from "./tables"

/** A mail, or the file that holds it: then its bytes never come to the main thread. */
export type MailSource = Uint8Array | { path: string }

/** All bytes of a mail. Rejects with ENOENT where its file is gone. */
export const wholeMail = async (mail: MailSource): Promise<Uint8Array> =>
  mail instanceof Uint8Array ? mail : readFile(mail.path)

/** What the thread is given: the raw message or its file, and what is known of it. */
export interface InboundToRead {
  mail: MailSource
  blobs_dir: string
  mail_from: string
  verdicts: SpamVerdicts
  /** False: only its header, because the rest was too much for a thread before. */
  whole: boolean
}

/** What a mail says, without anything that only the database knows. */
export interface ReadMail {
  from: Mailbox | null
  to: Mailbox[]
  cc: Mailbox[]
  reply_to: Mailbox[]
  subject: string | null
  rfc_message_id: string | null
  in_reply_to: string | null
  references: string[]
  headers: HeaderLists
  /** The bodies, or the file that has them as JSON, where they are too large for a row. */
  content: InboundContent | StoredElsewhere
  files: InboundFile[]
  kind: MailKind
  auto_submitted: string | null
  /** The header of the message that a report returns. */
  returned: HeaderLists | null
  spam: SpamScore
  /** It is too complex or too damaged to be read whole; the raw message is there. */
  parse_error: boolean
  /** It names more addresses than are kept, or its header is too long. */
  truncated: boolean
}

const MOST_REFERENCES = 100
/** Of To, and of each other field. */
const MOST_ADDRESSES = 1_000
const MOST_SUBJECT = 998
const MOST_MESSAGE_ID = 998

/** Runs in the worker thread, because a mail may be large or made to hurt. Rejects only where there is no file. */
export async function readInbound(given: InboundToRead): Promise<ReadMail> {
  const { mail, blobs_dir, mail_from, verdicts, whole } = given
  const blobs = blobsIn(blobs_dir)
  const raw = await wholeMail(mail)
  const tree: MailTree = whole ? readTree(raw) : { leaves: [], problem: "parts" }
  const seen = seenMail(raw, tree, mail_from)
  const { headers, text, html } = seen
  const encoded = encodedFields(raw)
  const content = {
    text_body: text,
    html_body: html,
    stripped_text: strippedOf(text, html),
  }
  const [from = null] = addressesOf(encoded, "from")
  const [to, cc, reply_to] = [
    addressesOf(encoded, "to"),
    addressesOf(encoded, "cc"),
    addressesOf(encoded, "reply-to"),
  ]
  return {
    from,
    to: to.slice(0, MOST_ADDRESSES),
    cc: cc.slice(0, MOST_ADDRESSES),
    reply_to: reply_to.slice(0, MOST_ADDRESSES),
    subject: headers.subject
      ? firstOf(headers, "subject").slice(0, MOST_SUBJECT).toWellFormed()
      : null,
    rfc_message_id: messageIds(firstOf(headers, "message-id")).at(0) ?? null,
    in_reply_to: messageIds(firstOf(headers, "in-reply-to")).at(0) ?? null,
    references: messageIds(firstOf(headers, "references")).slice(-MOST_REFERENCES),
    headers,
    content: await fitted(content, blobs),
    files: isTooComplex(tree) ? [] : await filesOf(tree.leaves, blobs),
    kind: classify(seen),
    auto_submitted: autoSubmitted(seen),
    returned: returnedHeaders(seen) ?? null,
    spam: spamScore(seen, verdicts),
    parse_error: tree.problem !== null,
    truncated: [to, cc, reply_to].some(({ length }) => length > MOST_ADDRESSES) || hasLongHead(raw),
  }
}

/** Of a mail that has html only, what a person reads of it. */
function strippedOf(text: string | null, html: string | null): string | null {
  const words = text?.trim() ? text : html === null ? text : textFromHtml(html)
  return words === null ? null : strippedText(words)
}

function addressesOf(fields: [string, string][], name: string): Mailbox[] {
  const values = fields.filter(([key]) => key === name).map(([, value]) => value)
  const mailboxes = values.flatMap((value) => readAddressList(value).mailboxes)
  return mailboxes.slice(0, MOST_ADDRESSES + 1).map(({ email, name }) => ({
    email: storable(email),
    name: name === null ? null : storable(name),
  }))
}

/** With their angle brackets. */
const messageIds = (value: string): string[] =>
  (value.match(/<[^<>\s]+>/g) ?? []).filter((id) => id.length <= MOST_MESSAGE_ID)

async function fitted(content: InboundContent, blobs: Blobs): Promise<ReadMail["content"]> {
  if (!isTooLong(content)) return content
  const { sha256 } = await blobs.put(Buffer.from(JSON.stringify(content)))
  return { sha256 }
}

/** As many as the readers of reports look at. */
const MOST_FILES = 1_000

const AT_ONCE = 8

async function filesOf(leaves: MailLeaf[], blobs: Blobs): Promise<InboundFile[]> {
  const wanted = leaves.filter(isFile).slice(0, MOST_FILES)
  const files: InboundFile[] = []
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const some = wanted.slice(at, at + AT_ONCE)
    files.push(...(await Promise.all(some.map((leaf, more) => fileOf(leaf, at + more, blobs)))))
  }
  return files
}

async function fileOf(leaf: MailLeaf, at: number, blobs: Blobs): Promise<InboundFile> {
  const { filename, content_type, content_id, disposition } = leaf
  const { sha256, size } = await blobs.put(contentOf(leaf))
  return {
    id: String(at),
    filename: filename === null ? null : storable(filename),
    content_type,
    size,
    content_id: content_id === null ? null : storable(content_id),
    disposition,
    sha256,
  }
}
