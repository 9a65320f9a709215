import type { Workers } from "../core/workers"
import type { Mailbox } from "../lib/address"
import { ComposeBatches, isSmall } from "./compose-batches"
import type { SigningKey } from "./signed"

/** Long enough for 10 MB of attachments on a slow machine, short enough not to hold a worker. */
const COMPOSE_DEADLINE_MS = 10_000

export interface MailToCompose {
  message_id: string
  /** Right-hand side of the Message-ID: the domain of `from`. */
  domain: string
  created_at: string
  from: Mailbox
  to: Mailbox
  cc: Mailbox[]
  reply_to: string | null
  subject: string
  text: string | null
  html: string | null
  headers: Record<string, string>
  attachments: AttachedFile[]
  /** Each signs the message, in this order; empty for a sender without keys of his own. */
  dkim: SigningKey[]
}

/**
 * What was asked for can never become a message. Everything else that goes wrong while composing is
 * a fault of this machine, which another try may not meet. The name survives the way out of a thread.
 */
export class Uncomposable extends Error {
  override readonly name = "Uncomposable"
}

export const isUncomposable = (error: unknown) =>
  error instanceof Error && error.name === "Uncomposable"

export interface AttachedFile {
  filename: string
  content_type: string
  /** Makes the part inline, for `cid:` links of the html. */
  content_id: string | null
  /** Of the blob's file, which the worker reads. */
  path: string
}

/**
 * The message as it is stored, counted and sent: CRLF, no bare CR, LF or NUL, and the same bytes
 * every time, because boundary, date, Message-ID and time of signing come from the message's own row. Rejects with
 * WorkerTimeout after ten seconds, with Uncomposable where the input cannot become a message, and with
 * whatever else went wrong on the way (a missing file has the code ENOENT).
 */
export function compose(workers: Workers, input: MailToCompose): Promise<Uint8Array> {
  if (isSmall(input)) return batchesOf(workers).add(input)
  return workers.run<Uint8Array>("compose", input, { deadline_ms: COMPOSE_DEADLINE_MS })
}

const batches = new WeakMap<Workers, ComposeBatches>()

function batchesOf(workers: Workers): ComposeBatches {
  const own = batches.get(workers) ?? new ComposeBatches(workers, COMPOSE_DEADLINE_MS)
  batches.set(workers, own)
  return own
}
