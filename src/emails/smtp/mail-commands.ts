import { isAscii as isSevenBit } from "node:buffer"
import { hostname } from "node:os"
import { isAscii, isMailbox, needsSmtputf8, wireForm } from "../../lib/address"
import { isClean } from "../../lib/mail-lines"

export interface SmtpEnvelope {
  message_id: string
  from: string
  to: string[]
  raw: Uint8Array
  smtputf8: boolean
}

/** Mistakes of ours that must not reach a command line of SMTP, where they would be another command. */
export function mistakeIn({ from, to, raw }: Pick<SmtpEnvelope, "from" | "to" | "raw">) {
  const bad = [...(from === "" ? [] : [from]), ...to].find((address) => !isMailbox(address))
  if (bad !== undefined) return `${JSON.stringify(bad)} is not an address`
  return isClean(raw) ? undefined : "the message holds a bare CR, LF or NUL"
}

/** What EHLO offered: keyword in upper case → parameters. */
export type Extensions = Map<string, string>

/** The lines of an EHLO reply, of which the first is the server's greeting. */
export const extensionsOf = (lines: string[]): Extensions =>
  new Map(
    lines.slice(1).map((line) => {
      const [, name = "", value = ""] = /^([^ =]*)[ =]?(.*)$/.exec(line) ?? []
      return [name.toUpperCase(), value]
    }),
  )

/** The message cannot be put to this server at all; `enhanced` is RFC 3463, in words of ours. */
export class Unsendable extends Error {
  readonly enhanced: "5.3.4" | "5.6.7"

  constructor(enhanced: Unsendable["enhanced"], message: string) {
    super(message)
    this.enhanced = enhanced
  }
}

export interface Commands {
  mail: string
  /** One a recipient, in order; undefined for one whose address the server cannot take. */
  recipients: (string | undefined)[]
}

export const notWide = () =>
  new Unsendable("5.6.7", "the server does not accept addresses outside ASCII (SMTPUTF8)")

/** MAIL, and one RCPT a recipient. Throws Unsendable where the server can take it for no recipient. */
export function commandsFor(envelope: SmtpEnvelope, extensions: Extensions): Commands {
  const { raw } = envelope
  const [sender = "", ...recipients] = [envelope.from, ...envelope.to].map(wireForm)
  const offered = extensions.has("SMTPUTF8")
  const whole = envelope.smtputf8 || needsSmtputf8(sender)
  if (!offered && (whole || recipients.every(needsSmtputf8))) {
    throw notWide()
  }
  const wide = offered && (whole || recipients.some(needsSmtputf8))
  const limit = Number(extensions.get("SIZE") || 0)
  if (limit > 0 && raw.length > limit) {
    const fact = `the message has ${raw.length} bytes, but the server accepts at most ${limit}`
    throw new Unsendable("5.3.4", fact)
  }
  const parameters = [
    extensions.has("SIZE") ? ` SIZE=${raw.length}` : "",
    extensions.has("8BITMIME") && (wide || !isSevenBit(raw)) ? " BODY=8BITMIME" : "",
    wide ? " SMTPUTF8" : "",
    // RFC 3461, 4.4: by it the other side can tell a repetition before it sees the message.
    extensions.has("DSN") && /^[\w-]+$/.test(envelope.message_id)
      ? ` ENVID=${envelope.message_id}`
      : "",
  ]
  const names = recipients.map((address) =>
    offered || !needsSmtputf8(address) ? `RCPT TO:<${address}>` : undefined,
  )
  return { mail: `MAIL FROM:<${sender}>${parameters.join("")}`, recipients: names }
}

/** RFC 5321, 4.1.3: a client without a full name of its own gives its address. */
export function ownName(address: string): string {
  const name = hostname()
  if (isAscii(name) && /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(name)) return name
  return address.includes(":") ? `[IPv6:${address}]` : `[${address}]`
}
