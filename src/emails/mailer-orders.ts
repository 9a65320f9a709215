import type { Fields } from "../core/log"
import type { MailToMake, SigningFacts } from "./compose-task"
import type { Recipe } from "./recipe"
import { PoolBusy, type PoolLimits } from "./smtp/pool"
import { SmtpRefusal, type SmtpServer, type Transaction, Unsendable } from "./smtp/session"
import { SmtpConnectionError, type SmtpReply } from "./smtp/wire"

/** The argument that makes a thread of the worker's file the mailer. */
export const MAILER = "--mailer"

/** A server as the mailer knows it. */
export interface PooledServer extends Omit<SmtpServer, "resolveHost"> {
  limits: PoolLimits
  /** Its address is asked for each connection. */
  asks_address: boolean
}

/** One transaction with a server. */
export interface MailToSend {
  message_id: string
  from: string
  to: string[]
  smtputf8: boolean
  wants_reports: boolean
  /** Its bytes, or what they are made of. */
  mail: Uint8Array | MailToMake
  /** Of bytes, where they may be signed. */
  signing: SigningFacts | undefined
  /** Over a new connection. */
  fresh: boolean
}

/** What the mailer is told. Each order but the first two is answered once, under its id. */
export type MailerOrder =
  | { kind: "open"; server: number; options: PooledServer }
  | { kind: "address"; question: number; address: string | undefined; error: string }
  | { kind: "close"; id: number; server: number }
  | { kind: "send"; id: number; server: number; mail: MailToSend }
  | { kind: "check"; id: number; server: number }
  | { kind: "sender"; id: number; server: number; address: string }
  | { kind: "make"; id: number; mail: MailToMake }
  | { kind: "ping"; id: number }

/** What came of one transaction, or why there was none. */
export interface SendAnswer {
  transcript: string[]
  tls: string | null
  /** Transactions of the connection so far; 0 where there was none. */
  used: number
  /** Of a mail that the mailer made. */
  recipe: Required<Recipe> | undefined
  transaction: Transaction | undefined
  error: Error | undefined
}

export interface ConnectionFacts {
  tls: string | null
  could_be_safe: boolean
}

/** What the mailer tells: how an order ended, where an address is wanted, and what a library would print. */
export type MailerAnswer =
  | { ready: true }
  | { id: number; value: unknown }
  | { id: number; error: PlainError }
  | { question: number; server: number }
  | { stray: "info" | "warn" | "error"; message: string; fields: Fields | undefined }

/** The bytes of a mail could not be made, so nothing was sent; `cause` says why. */
export class MailNotMade extends Error {
  override readonly name = "MailNotMade"

  constructor(cause: Error) {
    super(cause.message, { cause })
  }
}

/** The thread died with the order in hand: the mail may have left. */
export class MailerDied extends Error {
  override readonly name = "MailerDied"
}

/** An error as it travels between threads: the fields of the classes that a caller tells apart. */
export interface PlainError {
  name: string
  message: string
  stack?: string | undefined
  code?: unknown
  phase?: SmtpRefusal["phase"]
  reply?: SmtpReply
  is_spoken?: boolean
  kind?: SmtpConnectionError["kind"]
  enhanced?: Unsendable["enhanced"]
  cause?: PlainError
}

export function toPlain(error: unknown): PlainError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) }
  const { message, stack } = error
  if (error instanceof SmtpRefusal) {
    const { phase, reply, is_spoken } = error
    return { name: "SmtpRefusal", message, phase, reply, is_spoken }
  }
  if (error instanceof SmtpConnectionError)
    return { name: "SmtpConnectionError", message, kind: error.kind }
  if (error instanceof MailNotMade)
    return { name: error.name, message, cause: toPlain(error.cause) }
  if (error instanceof Unsendable) return { name: "Unsendable", message, enhanced: error.enhanced }
  return { name: error.name, message, stack, code: (error as { code?: unknown }).code }
}

export function fromPlain({ name, message, stack, code, cause, ...rest }: PlainError): Error {
  const { phase = "MAIL", reply, is_spoken, kind = "connection", enhanced = "5.3.4" } = rest
  if (name === "SmtpRefusal" && reply) return new SmtpRefusal(phase, reply, is_spoken)
  if (name === "SmtpConnectionError") return new SmtpConnectionError(kind, message)
  if (name === "Unsendable") return new Unsendable(enhanced, message)
  if (name === "MailNotMade" && cause) return new MailNotMade(fromPlain(cause))
  if (name === "PoolBusy") return new PoolBusy(message)
  return Object.assign(new Error(message), { name, stack }, code === undefined ? {} : { code })
}

/** A `SendAnswer` as it travels. */
export interface PlainSendAnswer
  extends Pick<SendAnswer, "transcript" | "tls" | "used" | "recipe"> {
  transaction: PlainTransaction | undefined
  error: PlainError | undefined
}

interface PlainTransaction extends Omit<Transaction, "recipients" | "failure"> {
  recipients: (SmtpReply | { unsendable: PlainError })[]
  failure?: PlainError
}

export function plainTransaction({ recipients, failure, ...rest }: Transaction): PlainTransaction {
  return {
    ...rest,
    recipients: recipients.map((one) =>
      one instanceof Unsendable ? { unsendable: toPlain(one) } : one,
    ),
    ...(failure && { failure: toPlain(failure) }),
  }
}

export function sendAnswer({ transaction, error, ...answer }: PlainSendAnswer): SendAnswer {
  return {
    ...answer,
    transaction: transaction && transactionOf(transaction),
    error: error && fromPlain(error),
  }
}

function transactionOf({ recipients, failure, ...rest }: PlainTransaction): Transaction {
  return {
    ...rest,
    recipients: recipients.map((one) =>
      "unsendable" in one ? (fromPlain(one.unsendable) as Unsendable) : one,
    ),
    ...(failure && { failure: fromPlain(failure) as SmtpConnectionError }),
  }
}
