import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import type { Mailbox } from "../lib/address"
import { readAddressList } from "../lib/address-list"
import { autoSubmitted } from "../lib/auto-reply"
import { returnedHeaders } from "../lib/dsn"
import { classify, type MailKind } from "../lib/mail-kind"
import { countFields, encodedFields } from "../lib/mail-text"
import {
  contentOf,
  isFile,
  MAX_FIELDS,
  type MailLeaf,
  type MailTree,
  readTree,
} from "../lib/mail-tree"
import { firstOf, type HeaderLists, seenMail } from "../lib/seen-mail"
import { strippedText } from "../lib/stripped-text"
import { textFromHtml } from "../lib/text-from-html"
import { type SpamScore, spamScore } from "./spam-score"
import type { SpamVerdicts } from "./spam-signs"
import type { InboundContent, InboundFile } from "./tables"

/** What the thread is given: the file of the raw message, and what is known of it. */
export interface InboundToRead {
  path: string
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
  content: InboundContent
  /** The content as JSON, where it is too large for a row. */
  large_content: { bytes: Uint8Array; sha256: string } | null
  files: { file: InboundFile; bytes: Uint8Array }[]
  kind: MailKind
  auto_submitted: string | null
  /** The header of the message that a report returns. */
  returned: HeaderLists | null
  spam: SpamScore
  /** It is too complex to be read whole; the raw message is there. */
  parse_error: boolean
}

/** Of all bodies together. Larger ones become a file, so that a row stays a row. */
const MOST_ROW_BYTES = 256 * 1024

const MOST_REFERENCES = 100
const MOST_ADDRESSES = 200
const MOST_SUBJECT = 998
const MOST_MESSAGE_ID = 998

/** Runs in the worker thread, because a mail may be large or made to hurt. Rejects only where there is no file. */
export async function readInbound({
  path,
  mail_from,
  verdicts,
  whole,
}: InboundToRead): Promise<ReadMail> {
  const raw = await readFile(path)
  const read: MailTree = whole ? readTree(raw) : { leaves: [], problem: "parts" }
  const tree: MailTree = countFields(raw) > MAX_FIELDS ? { leaves: [], problem: "fields" } : read
  const seen = seenMail(raw, tree, mail_from)
  const { headers, text, html } = seen
  const encoded = encodedFields(raw)
  const content = {
    text_body: text,
    html_body: html,
    stripped_text: strippedOf(text, html),
  }
  const [from = null] = addressesOf(encoded, "from")
  return {
    from,
    to: addressesOf(encoded, "to"),
    cc: addressesOf(encoded, "cc"),
    reply_to: addressesOf(encoded, "reply-to"),
    subject: headers.subject
      ? firstOf(headers, "subject").slice(0, MOST_SUBJECT).toWellFormed()
      : null,
    rfc_message_id: messageIds(firstOf(headers, "message-id")).at(0) ?? null,
    in_reply_to: messageIds(firstOf(headers, "in-reply-to")).at(0) ?? null,
    references: messageIds(firstOf(headers, "references")).slice(-MOST_REFERENCES),
    headers,
    ...fitted(content),
    files: tree.problem === null ? filesOf(tree.leaves) : [],
    kind: classify(seen),
    auto_submitted: autoSubmitted(seen),
    returned: returnedHeaders(seen) ?? null,
    spam: spamScore(seen, verdicts),
    parse_error: tree.problem !== null,
  }
}

/** Of a mail that has html only, what a person reads of it. */
function strippedOf(text: string | null, html: string | null): string | null {
  const words = text?.trim() ? text : html === null ? text : textFromHtml(html)
  return words === null ? null : strippedText(words)
}

/** A NUL is no text on Postgres, and half a character is none anywhere. */
const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

function addressesOf(fields: [string, string][], name: string): Mailbox[] {
  const values = fields.filter(([key]) => key === name).map(([, value]) => value)
  const mailboxes = values.flatMap((value) => readAddressList(value).mailboxes)
  return mailboxes
    .slice(0, MOST_ADDRESSES)
    .map(({ email, name }) => ({ email: clean(email), name: name === null ? null : clean(name) }))
}

/** With their angle brackets. */
const messageIds = (value: string): string[] =>
  (value.match(/<[^<>\s]+>/g) ?? []).filter((id) => id.length <= MOST_MESSAGE_ID)

function fitted(content: InboundContent): Pick<ReadMail, "content" | "large_content"> {
  const json = JSON.stringify(content)
  if (json.length <= MOST_ROW_BYTES) return { content, large_content: null }
  const bytes = new Uint8Array(Buffer.from(json))
  const none = { text_body: null, html_body: null, stripped_text: null }
  return { content: none, large_content: { bytes, sha256: hashOf(bytes) } }
}

/** As many as the readers of reports look at. */
const MOST_FILES = 1_000

const filesOf = (leaves: MailLeaf[]) =>
  leaves
    .filter(isFile)
    .slice(0, MOST_FILES)
    .map((leaf, at) => fileOf(leaf, new Uint8Array(contentOf(leaf)), at))

function fileOf(leaf: MailLeaf, bytes: Uint8Array, at: number) {
  const { filename, content_type, content_id, disposition } = leaf
  const file: InboundFile = {
    id: String(at),
    filename: filename === null ? null : clean(filename),
    content_type,
    size: bytes.length,
    content_id: content_id === null ? null : clean(content_id),
    disposition,
    sha256: hashOf(bytes),
  }
  return { file, bytes }
}

const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")
