import type { Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { SMTPConnection } from "smtp-server/lib/smtp-connection.js"
import { log } from "../core/log"
import { monotonic, now } from "../core/time"
import { isAscii } from "../lib/address"
import { subscriberOf } from "../lib/ip-ranges"
import {
  CheckedStream,
  countReceived,
  MailCollector,
  type MailMemory,
  type MailRoom,
} from "./mail-data"
import { readPath, unknownParameter } from "./mail-path"
import {
  ENHANCED,
  inWords,
  type MailServerOptions,
  type MailSession,
  refusalText,
  type SmtpDeadlines,
  SmtpReplyError,
  smtpRefusal,
} from "./mail-session"

/** What a server counts from its start. */
export interface SmtpCounts {
  sessions: number
  /** Connections that were refused for a limit, a drain or a bad PROXY header. */
  refused_connections: number
  failed_handshakes: number
  failed_logins: number
  timeouts: number
  accepted_mails: number
  refused_mails: number
  accepted_recipients: number
  refused_recipients: number
  received_bytes: number
  /** Sessions that have ended, by the `verdict` of their log line. */
  ended: Record<string, number>
}

/** What a server and its connections share. */
export interface ConnectionContext {
  options: MailServerOptions
  deadlines: SmtpDeadlines
  memory: MailMemory
  /** Counted from the start of the server. */
  tally: SmtpCounts
  isDraining: () => boolean
}

/** RFC 5321 asks for 512. */
const MOST_COMMAND_BYTES = 2048
/** Commands without a mail in between: more is no client that wants to send mail. */
const MOST_COMMANDS = 10_000
const MOST_REFUSALS = 100
/** Contract 22, section 3. */
const MOST_RECEIVED = 100
/** A client that goes on behind this many times the limit is cut off. */
const MOST_OVERSIZE = 2

type Resume = () => void
type ParameterCheck = Parameters<SMTPConnection["_rejectInvalidParams"]>

/** Other servers cannot be told to change what they send, and have no login. */
const takesAll = ({ options }: SMTPConnection["_server"]) => options.authOptional === true

/** One client of a mail server, from its greeting to the end of its connection. */
export class MailConnection extends SMTPConnection {
  readonly mail_session: MailSession
  /** Called once the connection is closed. */
  onGone: () => void = () => {}
  /** By `monotonic`; it moves on with what the client does. */
  deadline: number

  readonly #context: ConnectionContext
  readonly #room: MailRoom
  readonly #opened_at: number
  readonly #proxy: string | undefined
  /** The mailbox is there to be tried, by programs of this machine. */
  readonly #is_patient: boolean
  #data: { collector: MailCollector; ends_at: number } | undefined
  #commands = 0
  #refusals = 0
  /** Since the last mail. */
  #refusals_in_a_row = 0
  #mails = 0
  #recipients = 0
  #bytes = 0
  #last_refusal: string | undefined
  #ended_by: string | undefined
  #is_told = false

  constructor(
    server: ConstructorParameters<typeof SMTPConnection>[0],
    socket: Socket | TLSSocket,
    from: { id: string; address: string; proxy: string | undefined; opened_at: number },
    context: ConnectionContext,
  ) {
    super(server, socket, { id: from.id, remoteAddress: from.address })
    this.#context = context
    this.#room = context.memory.roomOf(subscriberOf(from.address))
    this.#opened_at = from.opened_at
    this.#proxy = from.proxy
    this.#is_patient = context.options.kind === "mailbox"
    this.deadline = from.opened_at + context.deadlines.greeting
    const { id, address } = from
    this.mail_session = { id, address, helo: "", tls: null, identity: undefined }
    context.tally.sessions += 1
  }

  /** Ends the session with this reply, also where the client has not asked anything. */
  endWith(why: string, code: number, text: string): void {
    if (this._closing || this._closed) return
    this.#ended_by = why
    this.send(code, text)
    this.close()
  }

  /** Whether the client owes us something: then a drain may end the session at once. */
  get is_idle(): boolean {
    return this.#data === undefined && !this._handlerPending
  }

  /** The TLS session begins: everything that was said before is forgotten (RFC 3207, 4.2). */
  secured(socket: Socket | TLSSocket): void {
    const secure = socket as TLSSocket
    const cipher = secure.getCipher()?.name ?? "unknown"
    this.mail_session.tls = { version: secure.getProtocol() ?? "unknown", cipher }
    this.mail_session.helo = ""
    this.mail_session.identity = undefined
  }

  /** Runs a handler and answers the command with what it throws. */
  async runHandler(work: () => Promise<void>, done: (refusal?: Error) => void): Promise<void> {
    let refusal: SmtpReplyError | undefined
    try {
      await work()
    } catch (error) {
      refusal = this.#refusalOf(error)
    }
    done(refusal && Object.assign(new Error(worded(refusal)), { responseCode: refusal.code }))
    if (refusal?.close) this.close()
  }

  /** What `isReady` says, and whether there is memory for a message of this size. */
  requireRoom(size = 0): void {
    const not_ready = this.#context.options.isReady()
    if (not_ready) throw not_ready
    if (!this.#room.hasRoom(size)) throw noMemory()
  }

  override _createParser(): CheckedStream {
    const of = takesAll(this._server) ? "servers" : "programs" // there is no context yet
    const parser = new CheckedStream({ maxCommandLength: MOST_COMMAND_BYTES }, of)
    parser.oncommand = (command, callback) => this._onCommand(command, callback)
    parser.onMailByte = () => this.#gotMailByte()
    parser.onFault = (fault) => {
      const text = refusalText("validation_error", `The input holds ${fault}`)
      this.endWith("fault", 550, `5.5.2 ${text}`)
    }
    parser.on("error", ({ message }) => {
      this.endWith("fault", 550, `5.5.2 ${refusalText("validation_error", message)}`)
    })
    return parser
  }

  override _onCommand(command: Buffer, callback?: Resume) {
    this.deadline = Number.POSITIVE_INFINITY
    this.#commands += 1
    if (!this._upgrading && this.#context.isDraining())
      return this.endWith("drain", 421, draining())
    if (this.#commands > MOST_COMMANDS && !this.#is_patient)
      return this.endWith("commands", 421, tooMany())
    super._onCommand(command, callback)
  }

  /** Every command ends here. From now on the client owes us the next one. */
  override _whenWritable(next: Resume): void {
    if (!this.#data) this.deadline = monotonic() + this.#context.deadlines.command
    super._whenWritable(next)
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const { kind, certificate } = this.#context.options
    const has_tls = certificate.current() !== undefined
    const place = { kind, secure: this.secure, has_tls }
    const [reply_code, lines] = inWords(code, data, context, place)
    if (reply_code >= 400) this.#noteRefusal(reply_code, lines)
    const has_own = code >= 400 || ENHANCED.test(lines[0] ?? "")
    super.send(reply_code, lines.length > 1 ? lines : lines[0], has_own ? false : context)
    if (this.#refusals_in_a_row > MOST_REFUSALS && !this.#is_patient && !this._closing)
      this.endWith("refusals", 421, tooMany())
  }

  #noteRefusal(code: number, lines: string[]) {
    const text = `${code} ${lines[0] ?? ""}`
    this.#last_refusal = text.slice(0, 200)
    this.#refusals += 1
    // A client with more recipients than a mail may have does nothing wrong.
    if (!text.startsWith("452 4.5.3")) this.#refusals_in_a_row += 1
  }

  /** The library reads the parameters. */
  override _parseAddressCommand(name: string, command: Buffer | string) {
    const line = command.toString()
    const colon = line.indexOf(":") + 1
    const path = readPath(name, line.slice(colon), takesAll(this._server))
    if (!path) return false
    const { address, parameters } = path
    const parsed = super._parseAddressCommand(name, `${line.slice(0, colon)}<>${parameters}`)
    const announced =
      /\sSMTPUTF8(\s|$)/i.test(parameters) || this.session.envelope.smtpUtf8 === true
    return parsed && (isAscii(address) || announced) ? { ...parsed, address } : false
  }

  /** Called for each MAIL and RCPT. */
  override _rejectInvalidParams(...[parsed, keys, callback]: ParameterCheck): boolean {
    const unknown = unknownParameter(this.#context.options.kind, keys, parsed.args || {})
    if (unknown === undefined) return super._rejectInvalidParams(parsed, keys, callback)
    this.send(555, `5.5.4 ${refusalText("validation_error", `${unknown} is no parameter here`)}`)
    callback()
    return true
  }

  override handler_EHLO(command: Buffer, callback: Resume): void {
    super.handler_EHLO(command, () => this.#greeted(callback))
  }

  override handler_HELO(command: Buffer, callback: Resume): void {
    super.handler_HELO(command, () => this.#greeted(callback))
  }

  #greeted(callback: Resume) {
    this.mail_session.helo = this.hostNameAppearsAs || ""
    callback()
  }

  override handler_VRFY(_command: Buffer, callback: Resume): void {
    this.send(252, "2.0.0 Nothing is verified here. Send the mail")
    callback()
  }

  /** Found by its name. */
  handler_EXPN(command: Buffer, callback: Resume): void {
    this.handler_VRFY(command, callback)
  }

  override handler_STARTTLS(command: Buffer, callback: Resume): void {
    if (this.#context.options.certificate.current()) {
      super.handler_STARTTLS(command, callback)
      return
    }
    this.send(454, `4.7.0 ${refusalText("service_unavailable", "TLS is not available")}`)
    callback()
  }

  override handler_DATA(_command: Buffer, callback: Resume) {
    const parser = this._parser as CheckedStream | false
    if (!parser) return callback()
    if (this.session.envelope.rcptTo.length === 0) {
      this.send(503, "Send RCPT first")
      return callback()
    }
    const not_ready = this.#context.options.isReady()
    if (not_ready) {
      this.send(not_ready.code, worded(not_ready))
      return callback()
    }
    const { deadlines, options } = this.#context
    const collector = new MailCollector(options.limits.size, this.#room)
    this.#data = { collector, ends_at: monotonic() + deadlines.data }
    this.#gotMailByte()
    parser.startMail(collector, () => this.#received(collector))
    this.send(354, "End data with <CR><LF>.<CR><LF>")
    callback()
  }

  #gotMailByte() {
    if (!this.#data) return
    const { collector, ends_at } = this.#data
    const { deadlines, options } = this.#context
    this.deadline = Math.min(monotonic() + deadlines.data_idle, ends_at)
    if (collector.size > MOST_OVERSIZE * options.limits.size) {
      this.endWith("oversize", 552, worded(tooLarge(options.limits.size)))
    }
  }

  /** The whole message is here. Its memory is given back once the handler has answered. */
  async #received(collector: MailCollector): Promise<void> {
    this.deadline = Number.POSITIVE_INFINITY
    this._handlerPending = true
    const { envelope } = this.session
    const recipients = envelope.rcptTo.length
    this.#bytes += collector.size
    this.#context.tally.received_bytes += collector.size
    const answer = await this.#take(collector).catch((error) => this.#refusalOf(error))
    collector.release()
    this.#data = undefined
    this._handlerPending = false
    this._transactionCounter += 1
    this._unrecognizedCommands = 0
    this._resetSession()
    if (typeof answer === "string") {
      this.#noteMail(recipients)
      this.send(250, answer)
    } else {
      this.#context.tally.refused_mails += 1
      this.send(answer.code, worded(answer))
      if (answer.close) this.close()
    }
    this.deadline = monotonic() + this.#context.deadlines.command
    // A client that keeps its connection for later would hold up the stop.
    if (this.#context.isDraining()) this.endWith("drain", 421, draining())
  }

  #noteMail(recipients: number) {
    this.#mails += 1
    this.#recipients += recipients
    this.#commands = 0
    this.#refusals_in_a_row = 0
    this.#context.tally.accepted_mails += 1
  }

  async #take(collector: MailCollector): Promise<string> {
    const { options } = this.#context
    if (collector.state === "too_large") throw tooLarge(options.limits.size)
    if (collector.state === "no_memory") throw noMemory()
    const raw = await collector.raw()
    if (countReceived(raw) > MOST_RECEIVED)
      throw smtpRefusal(554, "5.4.6", "validation_error", LOOP)
    const { mailFrom, rcptTo, smtpUtf8, bodyType } = this.session.envelope
    const mail = {
      raw,
      from: mailFrom ? mailFrom.address : "",
      to: rcptTo.map(({ address }) => address),
      smtputf8: smtpUtf8 === true,
      eight_bit: bodyType === "8bitmime",
      received_at: now(),
    }
    return options.onMail(mail, this.mail_session)
  }

  #refusalOf(error: unknown): SmtpReplyError {
    if (error instanceof SmtpReplyError) return error
    const session = this.mail_session.id
    log.error("a mail server could not answer a command", { session, error })
    const not_ready = this.#context.options.isReady() // a full disk is the usual reason
    return not_ready ?? smtpRefusal(451, "4.3.0", "internal_error", "Try again later")
  }

  override _onClose(): void {
    super._onClose()
    if (!this._handlerPending) this.#data?.collector.release() // a handler still reads the message
    if (this.#is_told) return
    this.#is_told = true
    this.onGone()
    const { options, tally } = this.#context
    const { id, address, helo, tls, identity } = this.mail_session
    const verdict =
      this.#ended_by ?? (this.#mails > 0 ? "accepted" : this.#last_refusal ? "refused" : "none")
    tally.ended[verdict] = (tally.ended[verdict] ?? 0) + 1
    log[this.#is_patient ? "debug" : "info"]("smtp session", {
      server: options.kind,
      session: id,
      address,
      ...(this.#proxy !== undefined && { proxy: this.#proxy }),
      helo,
      tls: tls && `${tls.version} ${tls.cipher}`,
      authenticated: identity !== undefined,
      mails: this.#mails,
      recipients: this.#recipients,
      bytes: this.#bytes,
      refusals: this.#refusals,
      ...(this.#last_refusal !== undefined && { last_refusal: this.#last_refusal }),
      verdict,
      duration_ms: Math.round(monotonic() - this.#opened_at),
    })
  }
}

/** Behind the code. */
export const worded = ({ enhanced, message }: SmtpReplyError) => `${enhanced} ${message}`

const noMemory = () => smtpRefusal(452, "4.3.1", "service_unavailable", TOO_MUCH)
const TOO_MUCH = "Too much mail is arriving at once. Try again later"

const tooLarge = (size: number) =>
  smtpRefusal(552, "5.3.4", "payload_too_large", `A message may have at most ${size} bytes`)

const LOOP = "The message passed more than 100 servers: a mail loop"

/** What a client hears that comes, or asks, while the server stops. */
export const draining = () =>
  `4.3.2 ${refusalText("service_unavailable", "The server is stopping. Try again in a moment")}`

const tooMany = () =>
  `4.7.0 ${refusalText("rate_limit_exceeded", "Too many commands or refusals without a mail")}`
