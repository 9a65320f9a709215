import { isAscii as isSevenBit } from "node:buffer"
import { hostname } from "node:os"
import { nextTurn } from "../../core/time"
import { isAscii, isMailbox, needsSmtputf8, wireForm } from "../../lib/address"
import { dotStuffed, isCleanInTurns } from "../../lib/mail-text"
import type { UnsentMail } from "../providers/provider"
import { isGood, SmtpConnection, SmtpConnectionError, type SmtpReply, type TlsNames } from "./wire"

export interface SmtpServer extends TlsNames {
  port: number
  username?: string | undefined
  password?: string | undefined
  /**
   * `starttls` insists on it: a server that does not offer it gets no mail. `opportunistic` takes it
   * where it is offered, and believes any certificate (RFC 7435).
   */
  tls: "starttls" | "implicit" | "none" | "opportunistic"
  /** The name given in EHLO; else that of the machine. */
  ehlo_name?: string | undefined
  /** The address to connect to, checked for each connection; else the host is resolved freely. */
  resolveHost?: (() => Promise<string>) | undefined
  timeouts: Timeouts
}

/** In milliseconds, each for one phase; `reply` for one reply, however slowly it drips. */
export interface Timeouts {
  connect: number
  greeting: number
  reply: number
  /** From the end of the message to the reply about it. */
  accepted: number
}

/** What one transaction came to. Without `end` the message itself was not answered. */
export interface Transaction {
  /** One reply a recipient, in order; missing from where the connection was lost. */
  recipients: (SmtpReply | Unsendable)[]
  end?: SmtpReply
  failure?: SmtpConnectionError
  /** The message itself began to travel: after a failure it is not known whether the server took it. */
  handed?: true
}

/** The server refused us before any recipient was named. */
export class SmtpRefusal extends Error {
  readonly phase: "greeting" | "EHLO" | "STARTTLS" | "AUTH" | "MAIL"
  readonly reply: SmtpReply
  /** False where it follows from what the server offers, so that the words are ours. */
  readonly is_spoken: boolean

  constructor(phase: SmtpRefusal["phase"], reply: SmtpReply, is_spoken = true) {
    super(reply.text)
    this.phase = phase
    this.reply = reply
    this.is_spoken = is_spoken
  }
}

export const MOST_TRANSCRIPT_LINES = 200

/** A small message gets its end here: a buffer for each of thousands a second costs more. */
const room = Buffer.allocUnsafeSlow(64 * 1024)

/** One connection, greeted and logged in, good for one transaction after another (RFC 5321). */
export class SmtpSession {
  readonly server: SmtpServer
  /** Transactions so far: a connection that was used before may have died unnoticed. */
  used = 0
  /** Of the attempt that uses the session now: what is said, without credentials and the message. */
  transcript: string[]
  tls: string | null = null
  #connected: SmtpConnection | undefined
  #extensions: Extensions = new Map()
  #dirty = false

  constructor(server: SmtpServer, transcript: string[]) {
    this.server = server
    this.transcript = transcript
  }

  /** Rejects with SmtpConnectionError or SmtpRefusal. The connection is closed then. */
  async open(): Promise<this> {
    const { host, port, tls, timeouts } = this.server
    this.#note(`* ${host}:${port}`)
    const wire = await SmtpConnection.open(port, await addressOf(this.server), timeouts.connect)
    this.#connected = wire
    try {
      if (tls === "implicit") this.tls = await this.#wire.secure(this.server, timeouts.connect)
      this.#expect("greeting", 220, await this.#hear("for the greeting", timeouts.greeting))
      await this.#hello()
      if (tls === "starttls" || tls === "opportunistic") await this.#startTls()
      if (this.server.username !== undefined) await this.#login(this.server.username)
      wire.conceal([])
      return this
    } catch (error) {
      wire.quit()
      throw error
    }
  }

  /** Can be used once more: connected, and the server has not spoken since. */
  get alive(): boolean {
    return this.#connected?.alive === true && !this.#connected.unasked
  }

  /** The server offers TLS that is not used. */
  get could_be_safe(): boolean {
    return this.tls === null && this.#extensions.has("STARTTLS")
  }

  quit(): void {
    this.#connected?.quit()
  }

  abort(): void {
    this.#connected?.close()
  }

  /** Throws SmtpRefusal at MAIL, Unsendable, or SmtpConnectionError before any recipient was answered. */
  async deliver(given: SmtpEnvelope): Promise<Transaction> {
    const is_wide = this.#extensions.has("8BITMIME")
    const envelope = is_wide ? given : await this.#withinReach(given)
    const { mail, recipients } = commandsFor(envelope, this.#extensions)
    const lines = [mail, ...recipients.filter((line) => line !== undefined), "DATA"]
    this.used++
    if (this.#dirty) await this.#reset()
    this.#dirty = true
    const pipelined = this.#extensions.has("PIPELINING")
    if (pipelined) this.#write(lines, lines)
    const next = (line: string) => (pipelined ? this.#hear(`after ${line}`) : this.#ask(line))

    const answer = await next(mail)
    if (answer.code >= 400 && answer.code !== 421 && pipelined) await this.#skip(lines.length - 1)
    this.#expect("MAIL", 250, answer)
    const result: Transaction = { recipients: [] }
    try {
      for (const line of recipients) {
        result.recipients.push(line === undefined ? notWide() : await next(line))
      }
      const some = result.recipients.some(isTaken)
      if (!some && !pipelined) return result
      const go = await next("DATA")
      if (go.code === 354 && some) {
        result.handed = true
        result.end = await this.#content(envelope.raw)
      } else if (go.code === 354)
        this.#wire.quit() // without a recipient there is no message
      else if (go.code >= 400) result.end = go
      else throw new SmtpConnectionError("protocol", `unexpected reply to DATA: ${go.text}`)
      this.#dirty = go.code !== 354
    } catch (error) {
      if (!(error instanceof SmtpConnectionError)) throw error
      result.failure = error
    }
    return result
  }

  /** What the server says of an envelope sender, before it knows a recipient. */
  async askSender(address: string): Promise<SmtpReply> {
    this.used++
    if (this.#dirty) await this.#reset()
    this.#dirty = true
    return this.#ask(`MAIL FROM:<${wireForm(address)}>`)
  }

  /** What a transaction began is forgotten, and another one begins. */
  async #reset() {
    const reply = await this.#ask("RSET")
    if (reply.code !== 250) this.quit()
    this.#expect("MAIL", 250, reply)
  }

  /** Replies to commands that follow from a refused one: read, so that the next transaction finds its own. */
  async #skip(count: number) {
    try {
      for (let read = 0; read < count; read++) {
        const { code } = await this.#hear("after a refusal")
        if (code === 354) this.quit() // it waits for a message that nobody sends
      }
    } catch (error) {
      if (!(error instanceof SmtpConnectionError)) throw error
    }
  }

  /** The mail as this server takes it: one without 8BITMIME gets every part in 7 bits (RFC 6152, 3). */
  async #withinReach(envelope: SmtpEnvelope): Promise<SmtpEnvelope> {
    const { raw, inSevenBits } = envelope
    if (!inSevenBits || isSevenBit(raw)) return envelope
    this.#note("* the server does not offer 8BITMIME: Belfry sends parts outside ASCII in base64")
    return { ...envelope, raw: await inSevenBits() }
  }

  async #content(raw: Uint8Array): Promise<SmtpReply> {
    const { reply, accepted } = this.server.timeouts
    if (this.#wire.unasked)
      throw new SmtpConnectionError("protocol", "the server spoke out of turn")
    this.#note(`C: (${raw.length} bytes)`)
    const whole = await this.#wire.send(dotStuffed(raw, room), reply).catch((error) => {
      if (this.#wire.unasked) return false // refused while we wrote, then hung up
      throw error
    })
    const answer = await this.#hear("for the reply to the message", accepted)
    if (whole) return answer
    this.#wire.close()
    if (answer.code >= 400) return answer
    throw new SmtpConnectionError("protocol", "the server accepted the message before it was sent")
  }

  get #wire(): SmtpConnection {
    if (!this.#connected) throw new SmtpConnectionError("connection", "not connected")
    return this.#connected
  }

  async #hello() {
    const name = this.server.ehlo_name ?? ownName(this.#wire.localAddress)
    let reply = await this.#ask(`EHLO ${name}`)
    // RFC 5321, 3.2: a server from before EHLO is greeted the old way, and offers nothing.
    if (NO_EHLO.has(reply.code)) reply = await this.#ask(`HELO ${name}`)
    this.#expect("EHLO", 250, reply)
    this.#extensions = extensionsOf(reply.lines)
  }

  /** A server that has no TLS, or not now, gets the mail without where TLS is `opportunistic`. */
  async #startTls() {
    const verify = this.server.tls !== "opportunistic"
    if (!this.#extensions.has("STARTTLS")) {
      if (verify) throw new SmtpConnectionError("tls", NO_STARTTLS)
      return
    }
    const reply = await this.#ask("STARTTLS")
    if (!verify && reply.code >= 400 && reply.code !== 421) return
    this.#expect("STARTTLS", 220, reply)
    const { timeouts } = this.server
    this.tls = await this.#wire.secure({ ...this.server, verify }, timeouts.connect)
    this.#note(`* ${this.tls}`)
    await this.#hello()
  }

  /** RFC 4954, PLAIN or else LOGIN, which needs three commands instead of one. */
  async #login(username: string) {
    const offered = mechanismsOf(this.#extensions)
    const mechanism = ["PLAIN", "LOGIN"].find((one) => offered.includes(one))
    if (!mechanism) throw new SmtpRefusal("AUTH", noMechanism(this.#extensions), false)
    const password = this.server.password ?? ""
    const plain = base64(`\0${username}\0${password}`)
    this.#wire.conceal([plain, base64(username), base64(password), password])
    if (mechanism === "PLAIN") {
      const reply = await this.#ask(`AUTH PLAIN ${plain}`, "AUTH PLAIN ***")
      return this.#expect("AUTH", 235, reply)
    }
    this.#expect("AUTH", 334, await this.#ask("AUTH LOGIN"))
    this.#expect("AUTH", 334, await this.#ask(base64(username), "***"))
    this.#expect("AUTH", 235, await this.#ask(base64(password), "***"))
  }

  #expect(phase: SmtpRefusal["phase"], code: number, reply: SmtpReply) {
    if (reply.code === code) return
    if (reply.code >= 400) throw new SmtpRefusal(phase, reply)
    throw new SmtpConnectionError("protocol", `unexpected reply to ${phase}: ${reply.text}`)
  }

  #ask(line: string, shown = line): Promise<SmtpReply> {
    this.#write([line], [shown])
    return this.#hear(`after ${shown}`)
  }

  #write(lines: string[], shown: string[]) {
    if (this.#wire.unasked)
      throw new SmtpConnectionError("protocol", "the server spoke out of turn")
    for (const line of shown) this.#note(`C: ${line}`)
    this.#wire.write(lines)
  }

  async #hear(what: string, ms = this.server.timeouts.reply): Promise<SmtpReply> {
    const reply = await this.#wire.read(what, ms)
    this.#note(`S: ${reply.text}`)
    return reply
  }

  #note(line: string) {
    if (this.transcript.length < MOST_TRANSCRIPT_LINES) this.transcript.push(line)
  }
}

const NO_STARTTLS = "the server does not offer STARTTLS, and nothing is sent without TLS"
const NO_EHLO = new Set([500, 502, 504])

export const isTaken = (reply: SmtpReply | Unsendable) =>
  !(reply instanceof Unsendable) && isGood(reply)

const base64 = (text: string) => Buffer.from(text).toString("base64")

/** Where to connect to. Rejects with SmtpConnectionError where that is refused or cannot be found out. */
const addressOf = async ({ host, resolveHost }: SmtpServer): Promise<string> => {
  if (!resolveHost) return host
  return resolveHost().catch((error: Error) => {
    throw new SmtpConnectionError("connection", error.message)
  })
}

/**
 * The mechanisms for a login that the server offers. RFC 4954, 4 allows no other, and a password must
 * not travel to a server that did not ask for it.
 */
const mechanismsOf = (extensions: Extensions): string[] =>
  (extensions.get("AUTH") ?? "").toUpperCase().match(/[^ =]+/g) ?? []

/** The server offers neither PLAIN nor LOGIN: in place of the refusal that it would have given. */
function noMechanism(extensions: Extensions): SmtpReply {
  const offered = mechanismsOf(extensions)
  const fact =
    offered.length > 0
      ? `the server accepts only ${offered.join(", ")} as login (AUTH), not PLAIN or LOGIN`
      : "the server offers no login (AUTH)"
  const advice = extensions.has("STARTTLS") ? " without TLS. Set tls to starttls" : ""
  return { code: 504, enhanced: "5.5.4", text: `${fact}${advice}`, lines: [] }
}

/** One message and its envelope. */
interface SmtpEnvelope
  extends Pick<UnsentMail, "message_id" | "from" | "to" | "smtputf8" | "wants_reports"> {
  raw: Uint8Array
  /** The same message in 7 bits, signed anew, for a server without 8BITMIME. */
  inSevenBits?: () => Promise<Uint8Array>
}

/** Mistakes of ours that must not reach a command line of SMTP, where they would be another command. */
export async function mistakeIn({ from, to, raw }: Pick<UnsentMail, "from" | "to" | "raw">) {
  const bad = [...(from === "" ? [] : [from]), ...to].find((address) => !isMailbox(address))
  if (bad !== undefined) return `${JSON.stringify(bad)} is not an address`
  // What is still to be made is looked at then.
  const is_clean = !(raw instanceof Uint8Array) || (await isCleanInTurns(raw, nextTurn))
  return is_clean ? undefined : "the message holds a bare CR, LF or NUL"
}

/** What EHLO offered: keyword in upper case → parameters. */
type Extensions = Map<string, string>

/** The lines of an EHLO reply, of which the first is the server's greeting. */
const extensionsOf = (lines: string[]): Extensions =>
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

const notWide = () =>
  new Unsendable("5.6.7", "the server does not accept addresses outside ASCII (SMTPUTF8)")

/** MAIL, and one RCPT a recipient. Throws Unsendable where the server can take it for no recipient. */
function commandsFor(envelope: SmtpEnvelope, extensions: Extensions) {
  const { raw } = envelope
  const [sender = "", ...recipients] = [envelope.from, ...envelope.to].map(wireForm)
  const offered = extensions.has("SMTPUTF8")
  const whole = envelope.smtputf8 || needsSmtputf8(sender)
  if (!offered && (whole || recipients.every(needsSmtputf8))) throw notWide()
  const wide = offered && (whole || recipients.some(needsSmtputf8))
  const notify =
    envelope.wants_reports && extensions.has("DSN") ? " NOTIFY=SUCCESS,FAILURE,DELAY" : ""
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
    notify === "" ? "" : " RET=HDRS",
  ]
  // One a recipient, in order; undefined for one whose address the server cannot take.
  const names = recipients.map((address) =>
    offered || !needsSmtputf8(address) ? `RCPT TO:<${address}>${notify}` : undefined,
  )
  return { mail: `MAIL FROM:<${sender}>${parameters.join("")}`, recipients: names }
}

/** RFC 5321, 4.1.3: a client without a full name of its own gives its address. */
function ownName(address: string): string {
  const name = hostname()
  if (isAscii(name) && /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(name)) return name
  return address.includes(":") ? `[IPv6:${address}]` : `[${address}]`
}
