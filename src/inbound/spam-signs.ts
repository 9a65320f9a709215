import { getDomain } from "tldts"
import { readAddressList } from "../lib/address-list"
import { linksInHtml } from "../lib/mail-links"
import { firstOf, type MailPart, type SeenMail } from "../lib/seen-mail"
import { textFromHtml } from "../lib/text-from-html"
import type { AuthVerdict } from "./tables"

/** What was found of the sender's authenticity. */
export type SpamVerdicts = Record<"spf" | "dkim" | "dmarc" | "arc", AuthVerdict | null>

/** A mail as the rules look at it. */
export interface SpamSigns {
  mail: SeenMail
  verdicts: SpamVerdicts
  subject: string
  from_name: string
  /** Registrable domain of From, such as `example.co.uk`; empty without one. */
  from_domain: string
  reply_domain: string
  /** Subject and body in lower case, without invisible characters. */
  words: string
  /** The body as people see it. */
  body: string
  html: string
  links: SpamLink[]
  /** In lower case. */
  filenames: string[]
}

export interface SpamLink {
  url: string
  /** In lower case. */
  host: string
  /** What the reader sees; the address itself in plain text. */
  text: string
}

/** Unwanted mail shows what it is in its beginning. */
const MOST_BODY = 64 * 1024
const MOST_HTML = 256 * 1024
const MOST_LINKS = 300
const MOST_VALUE = 1_000

export const INVISIBLE = /\u034f|[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]/g

/** Everything that more than one rule needs, found once. Never throws. */
export function spamSigns(mail: SeenMail, verdicts: SpamVerdicts): SpamSigns {
  const html = (mail.html ?? "").slice(0, MOST_HTML)
  const plain = (mail.text ?? "").slice(0, MOST_BODY)
  const body = plain.trim() === "" ? textFromHtml(html).slice(0, MOST_BODY) : plain
  const subject = firstOf(mail.headers, "subject").slice(0, MOST_VALUE)
  const from = addressOf(mail, "from")
  return {
    mail,
    verdicts,
    subject,
    from_name: from.name,
    from_domain: from.domain,
    reply_domain: addressOf(mail, "reply-to").domain,
    words: `${subject}\n${body}`.replace(INVISIBLE, "").replace(/\s+/g, " ").toLowerCase(),
    body,
    html,
    links: [...linksOfHtml(html), ...linksOfText(plain)].slice(0, MOST_LINKS),
    filenames: mail.parts.map(nameOf),
  }
}

function addressOf({ headers }: SeenMail, field: string): { name: string; domain: string } {
  const value = firstOf(headers, field).slice(0, MOST_VALUE)
  const [mailbox] = readAddressList(value).mailboxes
  if (!mailbox) return { name: value, domain: "" }
  const host = mailbox.email.slice(mailbox.email.lastIndexOf("@") + 1)
  return { name: mailbox.name ?? "", domain: registrable(host) }
}

/** Two hosts of one organization have the same. An address of IP is its own. */
export const registrable = (host: string): string => getDomain(host) ?? host.toLowerCase()

const nameOf = ({ filename, params }: MailPart) =>
  (filename ?? params.name ?? "").slice(0, 300).trim().toLowerCase()

const linksOfHtml = (html: string): SpamLink[] =>
  linksInHtml(html)
    .slice(0, MOST_LINKS)
    .flatMap(({ href, text }) => (href === "" ? [] : [linkOf(href, text)]))

function linksOfText(text: string): SpamLink[] {
  const found = text.match(/https?:\/\/[^\s<>"']{1,500}/gi) ?? []
  return found.slice(0, MOST_LINKS).map((url) => linkOf(url, url))
}

function linkOf(url: string, text: string): SpamLink {
  const bare = url.slice(0, MOST_VALUE)
  const host = URL.canParse(bare) ? new URL(bare).hostname.toLowerCase() : ""
  return { url: bare, host, text: text.slice(0, 300) }
}
