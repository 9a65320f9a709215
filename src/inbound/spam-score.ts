import { getDomain } from "tldts"
import { readAddressList } from "../lib/address-list"
import { isZip } from "../lib/archive"
import { linksInHtml } from "../lib/mail-links"
import { firstOf, type MailPart, type SeenMail } from "../lib/seen-mail"
import {
  ADVANCE_FEE,
  BRANDS,
  COINS,
  COLD_OFFER,
  CREDENTIALS,
  EASY_MONEY,
  FREE_MAIL,
  GAMBLING,
  NAMELESS,
  PHARMACY,
  PROGRAMS,
  SHORTENERS,
  THREAT,
  URGENCY,
} from "../lib/spam-words"
import { textFromHtml } from "../lib/text-from-html"
import type { AuthVerdict } from "./tables"

export interface SpamScore {
  /** From 0 to 10, with one decimal. */
  score: number
  /** From 5. */
  flagged: boolean
  /** The rules that apply, in the order of the table. */
  rules: { rule: string; points: number }[]
}

const MOST_POINTS = 10
const FLAGGED_FROM = 5

/**
 * How much a mail looks like unwanted mail: the sum of the rules that apply (`docs/inbound.md`). It asks
 * nobody, learns nothing and drops nothing: it is advice for the receiver. Never throws.
 */
export function spamScore(mail: SeenMail, verdicts: SpamVerdicts): SpamScore {
  const signs = spamSigns(mail, verdicts)
  const found = SPAM_RULES.filter(([, , applies]) => applies(signs))
  const sum = found.reduce((total, [, points]) => total + points, 0)
  const score = Math.round(Math.min(Math.max(sum, 0), MOST_POINTS) * 10) / 10
  const rules = found.map(([rule, points]) => ({ rule, points }))
  return { score, flagged: score >= FLAGGED_FROM, rules }
}

type SpamRule = [rule: string, points: number, applies: (signs: SpamSigns) => boolean]

const says = (pattern: RegExp) => (signs: SpamSigns) => pattern.test(signs.words)

/** At least two different words of a pattern that has the flag `g`. */
const saysTwice = (pattern: RegExp) => (signs: SpamSigns) =>
  new Set(signs.words.match(pattern)).size >= 2

const links = (matches: (link: SpamLink) => boolean) => (signs: SpamSigns) =>
  signs.links.some(matches)

const attached = (pattern: RegExp) => (signs: SpamSigns) =>
  signs.filenames.some((name) => pattern.test(name))

/** Every rule and its points. `docs/inbound.md` has the same table, and a test compares the two. */
export const SPAM_RULES: readonly SpamRule[] = [
  ["test_string", 10, ({ body }) => body.includes(TEST_STRING)],
  ["dmarc_fail", 2.5, ({ verdicts }) => verdicts.dmarc === "fail"],
  ["spf_fail", 1.5, ({ verdicts }) => verdicts.spf === "fail"],
  ["dkim_fail", 1, ({ verdicts }) => verdicts.dkim === "fail"],
  ["unauthenticated", 1, isUnauthenticated],
  ["dmarc_pass", -1, ({ verdicts }) => verdicts.dmarc === "pass"],
  ["reply", -1, ({ mail }) => isReply(mail)],
  ["no_from", 2, ({ from_domain }) => from_domain === ""],
  ["no_date", 1, ({ mail }) => !mail.headers.date],
  ["no_message_id", 0.5, ({ mail }) => !mail.headers["message-id"]],
  ["no_subject", 0.5, ({ subject }) => subject.trim() === ""],
  ["no_recipient", 0.5, ({ mail }) => !mail.headers.to && !mail.headers.cc],
  ["reply_elsewhere", 1.5, wantsReplyElsewhere],
  ["name_is_address", 2, showsOtherAddress],
  ["false_brand", 2, borrowsBrand],
  [
    "false_reply",
    1,
    ({ mail, subject }) => /^\s*(?:re|aw|sv|fwd?)\s*:/i.test(subject) && !isReply(mail),
  ],
  ["shouting_subject", 1, ({ subject }) => isShouted(subject, 10, 0.8)],
  ["excited_subject", 0.5, ({ subject }) => EXCITED.test(subject)],
  ["shouting_text", 1, ({ body }) => isShouted(body, 200, 0.5)],
  ["nameless_greeting", 1, ({ body }) => NAMELESS.test(body.slice(0, 300))],
  ["urgency", 1, says(URGENCY)],
  ["advance_fee", 3, saysTwice(ADVANCE_FEE)],
  ["extortion", 4, ({ words }) => COINS.test(words) && THREAT.test(words)],
  ["credentials", 2.5, asksForCredentials],
  ["pharmacy", 2.5, saysTwice(PHARMACY)],
  ["gambling_dating", 2.5, saysTwice(GAMBLING)],
  ["easy_money", 2.5, says(EASY_MONEY)],
  ["cold_offer", 2, saysTwice(COLD_OFFER)],
  ["gift_cards", 1.5, says(/\b(?:gift|itunes|steam|google play|amazon) ?cards?\b/)],
  ["picture_only", 1.5, isPictureOnly],
  ["hidden_text", 1.5, ({ html }) => HIDDEN_TEXT.test(html)],
  ["hidden_characters", 1.5, hidesCharacters],
  ["mixed_scripts", 2, mixesScripts],
  ["disguised_link", 2, links(isDisguised)],
  ["address_link", 2, links(({ host }) => /^(?:\d{1,3}\.){3}\d{1,3}$|^\[/.test(host))],
  ["shortened_link", 1, links(({ host }) => SHORTENERS.test(host))],
  ["odd_link", 1, links(({ url }) => ODD_LINK.test(url))],
  ["script", 2, ({ html }) => /<script\b|\bhref\s*=\s*["']?\s*(?:javascript|data):/i.test(html)],
  [
    "password_form",
    2.5,
    ({ html }) => /<form\b/i.test(html) && /type\s*=\s*["']?password/i.test(html),
  ],
  ["program_attached", 5, attached(PROGRAMS)],
  ["macro_attached", 2, attached(/\.(?:docm|dotm|xlsm|xltm|xlam|pptm|potm|ppam|one)$/)],
  ["page_attached", 2, attached(/\.(?:s?html?|xhtml|svg|mht(?:ml)?)$/)],
  ["locked_archive", 2, hasLockedArchive],
]

const EXCITED = /!{2}|\${2}|(?:💰|💵|🤑|🎁|🔥).*!|!.*(?:💰|💵|🤑|🎁|🔥)/u

/** GTUBE, which spam filters agree to flag, so that a receiver can be tried out. */
const TEST_STRING = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X"

/** Punycode, a user in front of the host, an address in hexadecimal or with a port of its own. */
const ODD_LINK =
  /^https?:\/\/(?:[^/?#]*@|[^/?#]*xn--|0x[0-9a-f]+|\d{8,10}(?:[/:?#]|$)|[^/?#]*:(?!(?:80|443|8443)\b)\d)/i

/** More than the preview line that newsletters hide. */
const HIDDEN_TEXT =
  /\bstyle\s*=\s*["'][^"'<>]{0,300}?(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|color\s*:\s*transparent)[^"'<>]{0,300}["'][^<>]{0,300}>[^<]{400}/i

function isUnauthenticated({ verdicts }: SpamSigns): boolean {
  const { spf, dkim, dmarc } = verdicts
  return [spf, dkim, dmarc].every((verdict) => verdict === "none")
}

const isReply = ({ headers }: SeenMail): boolean =>
  headers["in-reply-to"] !== undefined || headers.references !== undefined

/** A company whose answers go to a mailbox that anybody can have. */
function wantsReplyElsewhere({ from_domain, reply_domain }: SpamSigns): boolean {
  return reply_domain !== "" && reply_domain !== from_domain && FREE_MAIL.test(reply_domain)
}

/** The name says one address, the mail comes from another domain. */
function showsOtherAddress({ from_name, from_domain }: SpamSigns): boolean {
  const [, host] = /[\w.+-]{1,64}@([a-z0-9.-]{3,253})/i.exec(from_name) ?? []
  return host !== undefined && registrable(host) !== from_domain
}

function borrowsBrand({ from_name, from_domain }: SpamSigns): boolean {
  const named = from_name.replace(INVISIBLE, "").toLowerCase().match(BRANDS) ?? []
  return named.some((brand) => !from_domain.includes(brand.replace(/ |365/g, "")))
}

/** The share of capitals among the letters, of which there must be enough. */
function isShouted(text: string, least: number, share: number): boolean {
  const start = text.slice(0, 5_000)
  const capitals = start.match(/\p{Lu}/gu)?.length ?? 0
  if (capitals < least * share) return false // as most mail: its letters need not be counted
  const letters = capitals + (start.match(/\p{Ll}/gu)?.length ?? 0)
  return letters >= least && capitals >= letters * share
}

/** Words about an account, and a place where something is to be entered. */
function asksForCredentials({ words, links, filenames, html }: SpamSigns): boolean {
  const has_place =
    links.length > 0 || /<form\b/i.test(html) || filenames.some((name) => /\.s?html?$/.test(name))
  return has_place && CREDENTIALS.test(words)
}

const LEAST_LETTERS = 40

function isPictureOnly({ html, mail }: SpamSigns): boolean {
  if ((mail.text ?? "").trim() !== "" || !/<img\b/i.test(html)) return false
  return textFromHtml(html.replace(/<img\b[^>]{0,2000}>/gi, "")).length < LEAST_LETTERS
}

/** Signs without width inside words hide these from filters. Between words and emoji they are usual. */
function hidesCharacters({ subject, body }: SpamSigns): boolean {
  const text = `${subject} ${body.slice(0, 20_000)}`
  return (text.match(/[a-z][\u00ad\u200b\u200c\u2060\ufeff]+[a-z]/gi)?.length ?? 0) >= 3
}

/** One word of Latin letters with Cyrillic or Greek ones that look alike. */
function mixesScripts({ subject, from_name, body }: SpamSigns): boolean {
  return /[a-z][аеорсухіјѕԁοαν]|[аеорсухіјѕԁοαν][a-z]/iu.test(
    `${subject} ${from_name} ${body.slice(0, 20_000)}`,
  )
}

/** The reader sees one domain, and the link leads to another. */
function isDisguised({ host, text }: SpamLink): boolean {
  const [, shown] =
    /^(?:https?:\/\/)?((?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,20})(?:[/?#:]\S*)?$/i.exec(text.trim()) ??
    []
  return host !== "" && shown !== undefined && registrable(shown) !== registrable(host)
}

/** Encrypted, so that no scanner can look into it: by its own flag, or the password is in the mail. */
function hasLockedArchive({ mail, words, filenames }: SpamSigns): boolean {
  const is_encrypted = mail.parts.some(
    ({ content }) => isZip(content) && (content[6] ?? 0) % 2 === 1,
  )
  const tells =
    /\b(?:archive |zip |file )?(?:password|passwort|mot de passe|contraseña|пароль)(?: is| ist)?\s?[:=]/
  return (
    is_encrypted || (filenames.some((name) => /\.(?:zip|rar|7z)$/.test(name)) && tells.test(words))
  )
}

/** What was found of the sender's authenticity. */
export type SpamVerdicts = Record<"spf" | "dkim" | "dmarc" | "arc", AuthVerdict | null>

interface SpamSigns {
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

interface SpamLink {
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

const INVISIBLE = /\u034f|[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]/g

/** Everything that more than one rule needs, found once. Never throws. */
function spamSigns(mail: SeenMail, verdicts: SpamVerdicts): SpamSigns {
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
const registrable = (host: string): string => getDomain(host) ?? host.toLowerCase()

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
