import { domainToASCII } from "node:url"

/** RFC 5321, 4.5.3.1: octets, of the form that goes over the wire. */
const MAX_LOCAL_OCTETS = 64
const MAX_DOMAIN_OCTETS = 253
const MAX_ADDRESS_OCTETS = 254

/** Room for a display name; a bound on the work, not a rule of the format. */
const MAX_TEXT = 1_000

const MOST_SHOWN = 80

export interface Mailbox {
  email: string
  name: string | null
}

/**
 * Exactly one mailbox of RFC 5322: `a@b.test`, `<a@b.test>`, `Name <a@b.test>` or
 * `"Quoted, name" <a@b.test>`. Anything else (lists, groups, comments, routes, address literals,
 * control characters) is undefined. We are strict because the mailer is not: it turns what it
 * cannot read into other addresses that exist. Non-ASCII names, local parts (RFC 6531) and
 * domains (IDNA) are welcome; the spelling of the caller is kept.
 */
export function parseMailbox(text: string): Mailbox | undefined {
  if (text.length > MAX_TEXT || !isName(text)) return undefined
  const trimmed = text.replace(/^ +| +$/g, "")
  if (!trimmed.endsWith(">")) return isMailbox(trimmed) ? { email: trimmed, name: null } : undefined

  const split = splitNamed(trimmed)
  return split && isMailbox(split.email) ? split : undefined
}

/** Why a value is refused where one address is needed; long values are shown in part. */
export function notOneAddress(given: unknown): string {
  const text = typeof given === "string" ? given : (JSON.stringify(given) ?? String(given))
  const shown = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN).toWellFormed()}…` : text
  const written = typeof given === "string" ? sendableForm(given.trim()) : undefined
  const hint = written === undefined || written === given ? "" : ` Write it as ${written}.`
  return `The value must be one email address. You gave "${shown}".${hint}`
}

/** Text that is an atom or several, with dots where no grammar allows them (`a..b`, `.a`, `a.`). */
const DOTTED = /^[^\s"\\@(),:;<>[\]]+$/

/**
 * The mailbox that other servers mean by a bare address. Providers of mobile phones gave out local parts
 * such as `a..b` and `a.`, which may be written only in quotes. Undefined where nothing can be sent to it.
 */
export function sendableForm(email: string): string | undefined {
  if (isMailbox(email)) return email
  const parts = splitAddress(email)
  if (!parts || !DOTTED.test(parts.local)) return undefined
  const quoted = `"${parts.local}"@${parts.domain}`
  return isMailbox(quoted) ? quoted : undefined
}

/** A bare address, `local@domain`, without name, brackets or spaces around it. */
export function isMailbox(email: string): boolean {
  const usual = USUAL.exec(email)
  if (usual) return fits(usual[1] ?? "", email) && wireDomain(usual[2] ?? "") !== undefined
  const parts = splitAddress(email)
  if (!parts) return false
  const domain = wireDomain(parts.domain)
  if (!domain || !isLocalPart(parts.local)) return false
  return Math.max(octets(email), octets(`${parts.local}@${domain}`)) <= MAX_ADDRESS_OCTETS
}

/** Fit for a single line: no control character, no line or paragraph separator, whole characters. */
export const isName = (text: string): boolean =>
  !/[\p{Cc}\u2028\u2029]/u.test(text) && text.isWellFormed()

/** The domain as A-labels in lower case; empty for what `isMailbox` refuses. */
export function domainOf(email: string): string {
  const at = email.lastIndexOf("@")
  return at < 1 ? "" : (wireDomain(email.slice(at + 1)) ?? "")
}

const NEEDLESS_QUOTES = /^"([A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+)"(?=@)/

/**
 * The form in which two spellings of one address are equal: lower case, A-label domain, no quotes around a
 * local part that other servers write without them.
 */
export function comparable(given: string): string {
  const email = given.startsWith('"') ? given.replace(NEEDLESS_QUOTES, "$1") : given
  const at = email.lastIndexOf("@")
  const domain = at < 1 ? undefined : wireDomain(email.slice(at + 1))
  if (!domain) return email.toLowerCase()
  if (!CHANGEABLE.test(email)) return email // almost every address: no text is made for it
  return `${email.slice(0, at).normalize("NFC").toLowerCase()}@${domain}`
}

/** What lower case, NFC or A-labels may change. */
const CHANGEABLE = /[^\x00-\x40\x5b-\x7f]/

/** For envelope and header: the local part untouched, a domain outside ASCII as A-labels. */
export function wireForm(email: string): string {
  if (isAscii(email)) return email
  const parts = splitAddress(email)
  if (!parts || isAscii(parts.domain)) return email
  return `${parts.local}@${wireDomain(parts.domain) ?? parts.domain}`
}

/** The address cannot be written without SMTPUTF8 (RFC 6531): its local part is not ASCII. */
export const needsSmtputf8 = (email: string): boolean =>
  !isAscii(email) && !isAscii(splitAddress(email)?.local ?? email)

export const isAscii = (text: string): boolean => !/[^\x00-\x7f]/.test(text)

function splitNamed(text: string): Mailbox | undefined {
  const quoted = /^"((?:[^"\\]|\\.)*)" *<([^<>]*)>$/u.exec(text)
  if (quoted) return { name: unquote(quoted[1] ?? ""), email: quoted[2] ?? "" }
  // A name outside quotes may hold no "specials" but the dot: a comma or colon there is a list
  // or a group, an at sign a second address.
  const plain = /^([^"(),:;<>@[\]\\]*)<([^<>]*)>$/u.exec(text)
  return plain ? { name: plain[1]?.replace(/ +$/, "") || null, email: plain[2] ?? "" } : undefined
}

const unquote = (text: string): string | null => text.replace(/\\(.)/gu, "$1").trim() || null

function splitAddress(email: string): { local: string; domain: string } | undefined {
  const at = email.lastIndexOf("@")
  return at < 1 ? undefined : { local: email.slice(0, at), domain: email.slice(at + 1) }
}

/** What almost every address looks like: for these, and only these, octets are characters. */
const USUAL =
  /^([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*)@([A-Za-z0-9.-]+)$/

const fits = (local: string, email: string) =>
  local.length <= MAX_LOCAL_OCTETS && email.length <= MAX_ADDRESS_OCTETS

const ATOM = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+$/

/** Without angle brackets: the mailer turns them into spaces, which is another mailbox. */
const QUOTED = /^"(?:[ !#-;=?-[\]-~]|\\[ -;=?-~])+"$/

/** Not in an atom, though no control character: spaces and the invisible, which only deceive. */
const INVISIBLE = /[\p{C}\p{Z}]/u

function isLocalPart(local: string): boolean {
  if (octets(local) > MAX_LOCAL_OCTETS) return false
  const ascii = local.replace(/[^\x00-\x7f]/gu, "x")
  if (ascii !== local && INVISIBLE.test(local.replace(/ /g, ""))) return false
  return QUOTED.test(ascii) || ascii.split(".").every((atom) => ATOM.test(atom))
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** A top level of digits, or hexadecimal, is an IP address to a resolver, never a domain. */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/

/** Mail comes from few domains and goes to a few hundred, each read several times a message. */
const MOST_KNOWN = 1_000
const known = new Map<string, string | false>()

/**
 * The domain of a mailbox in lower case and A-labels, as it is sent; undefined when it is not
 * valid.
 */
export function wireDomain(domain: string): string | undefined {
  const found = known.get(domain)
  if (found !== undefined) return found || undefined
  const wire = readDomain(domain)
  if (known.size >= MOST_KNOWN) known.clear()
  if (domain.length <= MAX_DOMAIN_OCTETS) known.set(domain, wire ?? false)
  return wire
}

function readDomain(domain: string): string | undefined {
  const ascii = isAscii(domain) ? domain.toLowerCase() : aLabels(domain)
  const labels = ascii.split(".")
  const top = labels.at(-1) ?? ""
  if (labels.length < 2 || ascii.length > MAX_DOMAIN_OCTETS || NUMBER.test(top)) return undefined
  return labels.every((label) => LABEL.test(label)) ? ascii : undefined
}

/** `domainToASCII` reads a host of a URL: what has a meaning only there must not reach it. */
function aLabels(domain: string): string {
  if (!/^[A-Za-z0-9.\u0080-\u{10ffff}-]+$/u.test(domain) || INVISIBLE.test(domain)) return ""
  return domainToASCII(domain)
}

const octets = (text: string): number => Buffer.byteLength(text)

/**
 * The domain of the embedded mailbox: it is verified wherever mail goes there, and some of its
 * addresses bounce, complain or defer as their name says (contract 20, section 6).
 */
export const MAILBOX_DOMAIN = "mailbox.test"

/** Under `up` mail to each address of this domain is for the box's own project, without DNS. */
export const INBOX_DOMAIN = `in.${MAILBOX_DOMAIN}`

/** Mail from these domains goes to the embedded mailbox, so they have no records and no keys. */
export const isBuiltIn = (domain: string): boolean =>
  domain === MAILBOX_DOMAIN || domain === INBOX_DOMAIN
