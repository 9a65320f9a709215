import { SMTPStream } from "smtp-server/lib/smtp-stream.js"
import { nextTurn } from "../core/time"
import { ByteCheck, type ByteFault, type MailCollector } from "./mail-data"

/**
 * Reads commands and messages from the socket. Every byte passes the byte check before it counts
 * as a command or as a part of a message.
 */
export class CheckedStream extends SMTPStream {
  onFault: (fault: ByteFault) => void = () => {}
  onMailByte: () => void = () => {}
  readonly #check = new ByteCheck()
  #fault: ByteFault | undefined
  #in_turn = 0
  #mail: { collector: MailCollector; received: () => Promise<void> } | undefined

  /** A fault waits behind what came before it, so that replies keep their order. */
  override write(chunk: unknown): boolean {
    if (this.isClosed || this.#fault) return true
    this.#fault = this.#check.feed(chunk as Buffer)
    return super.write(this.#fault ? FAULT : chunk)
  }

  override _write(chunk: Buffer, encoding: BufferEncoding | "buffer", next: () => void) {
    if (chunk !== FAULT) return super._write(chunk, encoding, next)
    if (this.#fault && !this.isClosed) this.onFault(this.#fault)
    next()
  }

  /** From here until the single dot everything belongs to the message. */
  startMail(collector: MailCollector, received: () => Promise<void>): void {
    this._dataMode = true
    this.#mail = { collector, received }
  }

  override _feedDataStream(chunk: Buffer, next: (error?: Error) => void) {
    const mail = this.#mail
    this.onMailByte()
    const rest = this.isClosed ? undefined : mail?.collector.feed(chunk)
    if (!mail || rest === undefined) return this.#goOn(chunk.length, next)
    this._dataMode = false
    this._remainder = ""
    this.#mail = undefined
    mail.received().then(() => this._write(rest, "buffer", next), next)
  }

  /** After so many bytes of a mail others get their turn. The socket is not read until then. */
  #goOn(bytes: number, next: () => void) {
    this.#in_turn += bytes
    if (this.#in_turn < MOST_IN_TURN) return next()
    this.#in_turn = 0
    nextTurn().then(next)
  }
}

/** Checking and copying 1 MB takes 2 ms. */
const MOST_IN_TURN = 1024 * 1024

/** Stands in the queue where a fault was found. */
const FAULT = Buffer.from("!")
