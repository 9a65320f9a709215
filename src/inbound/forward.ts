import { fail, type Problems } from "../core/errors"
import { type AttachmentInput, CONTENT_ID, MEDIA_TYPE } from "../emails/attachments"
import { readAddress, type SendEmail } from "../emails/fields"
import type { Mailbox } from "../lib/address"
import { safeFilename } from "../lib/file-names"
import { storable } from "../lib/seen-mail"
import { authorsOf, EMPTY, oneLine, prefixed } from "./inbound-reply"
import { type RawMailParts, rawMail } from "./raw-mail"
import type { InboundContent, InboundFile, InboundRow, ParsedInbound } from "./tables"

/** Reads the body of a forward. */
export function readForward(body: unknown, problems: Problems) {
  const { to, from } = (body ?? {}) as Record<string, unknown>
  if (to == null) problems.add("to", "required", "The field is required.")
  const one = Array.isArray(to) && to.length === 1 ? to[0] : to
  return {
    to: (to == null ? undefined : readAddress(one, "to", problems)) ?? { email: "", name: null },
    from: from == null ? undefined : readAddress(from, "from", problems),
  }
}

/**
 * A mail passed on, as an email that can be sent: its text under a few lines that say where it comes
 * from, with its attachments; answers go to its author. A mail that could not be read, or with more than
 * 50 attachments, goes along whole as a file. Throws 404 for a file that is no longer stored.
 */
export async function forwardOf(
  row: InboundRow,
  content: InboundContent | undefined,
  stored: RawMailParts,
  { to, from }: { to: Mailbox; from: Mailbox | undefined },
): Promise<SendEmail> {
  const { parsed, parse_error } = row
  const is_unread = parse_error || !parsed
  const own = is_unread ? [] : parsed.attachments
  const is_whole = is_unread || own.length > MOST_FILES
  const attachments: AttachmentInput[] = []
  if (is_whole) attachments.push(givenFile(WHOLE, await rawMail(stored, row)))
  else for (const file of own) attachments.push(givenFile(file, await bytesOf(file, stored)))
  const said = provenance(row)
  const { text_body, html_body } = (is_unread ? undefined : content) ?? NO_TEXT
  return {
    ...{ ...EMPTY, to, from, cc: [], reply_to: authorsOf(row).slice(0, 10), attachments },
    subject: prefixed("Fwd:", row.subject),
    text: `${said.join("\n")}\n\n${storable(text_body ?? "")}`,
    html: html_body === null ? null : `${htmlLines(said)}${storable(html_body)}`,
    ...{ track_opens: false, track_clicks: false }, // links of a stranger's mail stay as they are
    headers: { "X-Loop": [...hopsOf(row), wireSafe(row.to_email)].join(", ") },
  }
}

/** A send takes no more. */
const MOST_FILES = 50

/** Addresses that a mail was passed on from. A longer way is a loop. */
export const MOST_HOPS = 10

/**
 * Whether this mail was passed on from its recipient before, on whatever way: passing it on again would
 * never end.
 */
export function wasForwarded(row: InboundRow): boolean {
  const hops = hopsOf(row)
  return hops.length >= MOST_HOPS || wasForwardedFrom(row, row.to_email)
}

/** Whether this mail was passed on from the address before. */
export const wasForwardedFrom = (row: InboundRow, address: string): boolean =>
  hopsOf(row).includes(wireSafe(address))

const HOP = /^[!-+\--~]{1,254}$/

/** What the mail says itself, which servers on the way have kept. */
const hopsOf = ({ parsed }: InboundRow): string[] =>
  (parsed?.headers["x-loop"] ?? [])
    .flatMap((value) => value.split(",").map((hop) => hop.trim()))
    .filter((hop) => HOP.test(hop))
    .slice(0, MOST_HOPS)

/** As text of a header in ASCII. */
const wireSafe = (email: string) => encodeURI(email).replaceAll(/%40/g, "@")

const NO_TEXT = { text_body: null, html_body: null }

const WHOLE = {
  filename: "message.eml",
  content_type: "application/octet-stream",
  content_id: null,
}

const bytesOf = ({ sha256 }: InboundFile, { inbound_blobs }: RawMailParts) =>
  inbound_blobs.get(sha256)

type KnownFile = Pick<InboundFile, "filename" | "content_type" | "content_id">

/** As a request could name it: what a stranger wrote as name, type or id may be anything. */
function givenFile(file: KnownFile, stored: Uint8Array | undefined): AttachmentInput {
  const bytes = stored ?? fail("not_found", "An attachment of this mail is no longer stored.")
  const content_id = file.content_id?.replace(/^<|>$/g, "") ?? ""
  const [type = ""] = file.content_type.split(";")
  return {
    filename: safeFilename(file.filename),
    content_type: MEDIA_TYPE.test(type) ? type : "application/octet-stream",
    content_id: CONTENT_ID.test(content_id) ? content_id : null,
    bytes,
  }
}

function provenance({ from_email, from_name, subject, created_at, to_email, parsed }: InboundRow) {
  const address = ({ email, name }: Mailbox) => (name ? `${name} <${email}>` : email)
  const to = listOf(parsed, to_email).map(address)
  return [
    "---------- Forwarded message ----------",
    `From: ${from_email === null ? "unknown" : address({ email: from_email, name: from_name })}`,
    `Date: ${created_at}`,
    `Subject: ${subject ?? ""}`,
    `To: ${to.join(", ")}`,
  ].map(oneLine)
}

const MOST_NAMED = 10

const listOf = (parsed: ParsedInbound | null, to_email: string): Mailbox[] =>
  parsed?.to.length ? parsed.to.slice(0, MOST_NAMED) : [{ email: to_email, name: null }]

const htmlLines = (lines: string[]) =>
  `<div>${lines.map((line) => Bun.escapeHTML(line)).join("<br>")}</div><br>`
