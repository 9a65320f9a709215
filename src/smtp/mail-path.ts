import type { MailServerOptions } from "./mail-session"

type ServerKind = MailServerOptions["kind"]

/** What MAIL and RCPT name, as the client wrote it, and the parameters behind it. */
interface MailPath {
  /** Empty for the null sender. */
  address: string
  parameters: string
}

/** Spaces at the ends are cut afterwards: a pattern would try each of them at each place. */
const IN_BRACKETS = /^<((?:"(?:[^"\\]|\\.)*"|[^<>"])*)>(?=[ \t]|$)/
const BARE = /^((?:"(?:[^"\\]|\\.)*"|[^\s<>"])+)(?=[ \t]|$)/
const PARAMETERS = /^(?:[ \t]+[A-Za-z0-9][A-Za-z0-9-]*(?:=\S*)?)*$/
const POSTMASTER = /^postmaster$/i // RFC 5321, 4.5.1
const ROUTE = /^@[^:]*:/

/**
 * Reads what stands behind the colon of `mail from` or `rcpt to`. A path without angle brackets is one only with
 * `takes_bare`. RFC 5321 has a source route ignored; as recipient a server that relays nothing refuses it.
 */
export function readPath(name: string, text: string, takes_bare: boolean): MailPath | undefined {
  const given = text.trim()
  const found = IN_BRACKETS.exec(given) ?? (takes_bare ? BARE.exec(given) : null)
  if (!found) return undefined
  const [whole, inside = ""] = found
  const path = inside.trim()
  const parameters = given.slice(whole.length)
  if (!PARAMETERS.test(parameters)) return undefined
  const is_recipient = name === "rcpt to"
  const address = is_recipient ? path : path.replace(ROUTE, "")
  const is_one = isPath(address) || (is_recipient ? POSTMASTER.test(address) : path === "")
  return is_one ? { address, parameters } : undefined
}

/** The longest line of a command (RFC 5321, 4.5.3.1.4). Addresses of lists and of forwarders are long. */
const MOST_CHARACTERS = 512

/**
 * Text before the last at sign, quoted or without white space, and a domain or an address literal behind it.
 * Providers gave out local parts that no grammar allows (`a..b@`, `a.@`), and such people write mail.
 */
const PATH = /^(?:"(?:[^"\\]|\\.)+"|[^\s"@,;()<>]+)@(?:[^\s"@,;()<>[\]:]+|\[[\w.:]+\])$/

/** Invisible, and of use only to deceive. A joiner may stand within a name of some scripts. */
const UNSAFE = /[\p{Cc}\u200b\u2060\ufeff\ufffd\u2028\u2029]/u

const isPath = (address: string): boolean =>
  address.length <= MOST_CHARACTERS && !UNSAFE.test(address) && PATH.test(address)

/** By kind of server: what the answer to EHLO offers, and AUTH where there is a login (RFC 4954, 5). */
const MAIL_PARAMETERS: Record<ServerKind, string[]> = {
  submission: ["SIZE", "BODY", "SMTPUTF8", "AUTH"],
  inbound: ["SIZE", "BODY", "SMTPUTF8"],
  mailbox: ["SIZE", "BODY", "SMTPUTF8", "RET", "ENVID"],
}
const RCPT_PARAMETERS: Record<ServerKind, string[]> = {
  submission: [],
  inbound: [],
  mailbox: ["NOTIFY", "ORCPT"],
}

/** A parameter that no extension of the server knows. `valued` are those of the library that need a value. */
export function unknownParameter(kind: ServerKind, valued: string[], given: object) {
  const known = (valued.includes("BODY") ? MAIL_PARAMETERS : RCPT_PARAMETERS)[kind]
  return Object.keys(given).find((name) => !known.includes(name))
}
