import { parseTags } from "../../lib/record-text"

export type MailHeaders = Record<string, string | string[]>

interface HeaderNote {
  name: string
  value: string
  /** What the field means here; empty for a field that is not known. */
  note: string
}

interface SenderFact {
  name: string
  text: string
  tone: "good" | "warn" | "plain"
}

const all = (headers: MailHeaders, name: string): string[] => [headers[name] ?? []].flat()

const first = (headers: MailHeaders, name: string): string => all(headers, name)[0] ?? ""

/** The domain of an address, in lower case. In a header the name may look like an address, so `<…>` wins. */
function domainIn(text: string): string | undefined {
  const bare = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, " ")
  const [, inside] = /.*<([^<>]*)>/s.exec(bare) ?? []
  const [, domain] = /@([^\s<>@,;"()]+)/.exec(inside ?? bare.replaceAll(/\([^()]*\)/g, " ")) ?? []
  return domain?.toLowerCase()
}

/** `a=1; b=2` of a DKIM signature as a record (RFC 6376, 3.2). */
export const signatureTags = (signature: string): Record<string, string> =>
  Object.fromEntries(parseTags(signature.replaceAll(/\s+/g, "")).tags)

interface SenderOfMail {
  headers: MailHeaders
  /** Null: another program's mail, whose signature nobody has verified. */
  email_id: string | null
  /** The sender of the envelope. A receiver writes it into Return-Path. */
  envelope_from: string
  /** By domain: the organizational one. */
  organizations: Record<string, string>
}

/** What the headers say. Nothing is looked up for it, so only what Belfry itself signed is good. */
export function senderFacts({ headers, ...mail }: SenderOfMail): SenderFact[] {
  const from = domainIn(first(headers, "from"))
  const organizationOf = (domain: string) =>
    Object.hasOwn(mail.organizations, domain) ? mail.organizations[domain] : domain
  /** DMARC's relaxed alignment: two domains of one organization belong together (RFC 7489, 3.1). */
  const isOfAuthor = (domain: string) =>
    from !== undefined && organizationOf(domain) === organizationOf(from)
  const [envelope = mail.envelope_from] = all(headers, "return-path")
  const signatures = all(headers, "dkim-signature")
  const known = mail.email_id === null ? "plain" : "good"
  return [
    ...(signatures.length > 0 ? signatures : [""]).map((one) => dkimFact(one, isOfAuthor, known)),
    spfFact(domainIn(envelope), isOfAuthor),
    messageIdFact(first(headers, "message-id"), isOfAuthor),
    { name: "Thread", text: threadText(headers), tone: "plain" },
  ]
}

type IsOfAuthor = (domain: string) => boolean

const NO_SIGNATURE =
  "No signature. Receivers cannot check the sender. Add and verify a domain, and Belfry signs."

function dkimFact(
  signature: string,
  isOfAuthor: IsOfAuthor,
  known: SenderFact["tone"],
): SenderFact {
  if (signature === "") return { name: "DKIM", text: NO_SIGNATURE, tone: "warn" }
  const { d = "?", s = "?", a = "?", h = "" } = signatureTags(signature)
  const signed = h.split(":").filter(Boolean).length
  const is_own = isOfAuthor(d.toLowerCase())
  const whose = is_own ? "the domain of From, as DMARC wants it" : "not the domain of From"
  const text = `Signed by ${d}, ${whose}. The key is at ${s}._domainkey.${d} (${a}). It covers the body and ${signed} header fields.`
  return { name: "DKIM", text, tone: is_own ? known : "warn" }
}

function spfFact(envelope: string | undefined, isOfAuthor: IsOfAuthor): SenderFact {
  if (envelope === undefined) return { name: "SPF", text: NO_ENVELOPE, tone: "plain" }
  const is_own = isOfAuthor(envelope)
  const rest = is_own ? "It belongs to the domain of From." : "It is not the domain of From."
  const text = `Receivers look up the SPF record of ${envelope}, the domain of the envelope sender. ${rest} The record was not looked up here.`
  return { name: "SPF", text, tone: is_own ? "plain" : "warn" }
}

const NO_ENVELOPE =
  "The envelope has no sender, as that of a bounce. Receivers look up the SPF record of the sending server's name."

function messageIdFact(id: string, isOfAuthor: IsOfAuthor): SenderFact {
  if (id === "") return { name: "Message-ID", text: NO_NAME, tone: "warn" }
  const is_own = isOfAuthor(domainIn(id) ?? "")
  const whose = is_own ? "It has the domain of From." : "Its domain is not that of From."
  return { name: "Message-ID", text: `${id} names this mail for ever. ${whose}`, tone: "plain" }
}

const NO_NAME =
  "The mail has no name of its own. Replies cannot refer to it, and spam filters mind."

function threadText(headers: MailHeaders): string {
  const answered = first(headers, "in-reply-to").trim()
  const [root] = first(headers, "references").trim().split(/\s+/)
  if (!answered && !root) return "This mail begins a thread."
  return `It answers ${answered || "an earlier mail"}. The thread began with ${root || answered}.`
}

const NOTES: Record<string, string> = {
  from: "The author that the reader sees.",
  to: "The recipients that the reader sees. The envelope may name others.",
  cc: "Recipients of a copy, for everybody to see.",
  "reply-to": "The address that gets the answers, in place of From.",
  sender: "The program or person that sent the mail for the author.",
  subject: "The line in the list of mails.",
  date: "When the author sent it, by the author's clock (RFC 5322).",
  "message-id": "The name of this mail in the whole world.",
  "in-reply-to": "The Message-ID of the mail that this one answers.",
  references: "The Message-IDs of the thread, the oldest first.",
  "return-path": "The envelope sender: it gets the bounces, and SPF checks its domain.",
  received: "A server that handed the mail on. The topmost was the last one.",
  "dkim-signature": "The signature of a domain over the body and some headers (RFC 6376).",
  "authentication-results":
    "What a receiving server found out about SPF, DKIM and DMARC (RFC 8601).",
  "mime-version": "The mail has parts or letters beyond ASCII (RFC 2045).",
  "content-type": "What the body is, and what separates its parts.",
  "content-transfer-encoding": "How the body is written in lines of ASCII.",
  "list-unsubscribe": "Where mail programs unsubscribe. Gmail and Yahoo want it on bulk mail.",
  "list-unsubscribe-post": "One press unsubscribes, without a page in between (RFC 8058).",
  "list-id": "The name of the mailing list (RFC 2919).",
  "feedback-id": "Gmail groups complaints by it.",
  "auto-submitted": "A program wrote it, so that other programs do not answer (RFC 3834).",
  precedence: "An old sign of bulk mail; some programs do not answer it.",
  "x-svc-email-id": "The id of the email in Belfry. Its status and events are found by it.",
  "x-mailer": "The program that wrote the mail.",
}

/** Each field with its meaning, in the order of the mail. */
export const explainHeaders = (headers: MailHeaders): HeaderNote[] =>
  Object.keys(headers).flatMap((name) => {
    const note = Object.hasOwn(NOTES, name) ? (NOTES[name] ?? "") : ""
    return all(headers, name).map((value) => ({ name, value, note }))
  })
