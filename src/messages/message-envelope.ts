import type { Mailbox } from "../lib/address"

export interface AttachmentRow {
  id: string
  filename: string
  content_type: string
  content_id: string | null
  size: number
  sha256: string
}

/**
 * What lists show besides the columns: never searched, written once. An optional field that is not set
 * is absent, so that a plain message is no larger for it.
 */
export interface Envelope {
  /** Of an email: its author, as the header names them. */
  from?: Mailbox
  reply_to?: Mailbox[]
  attachments?: AttachmentRow[]
  /** Of a text alone. */
  sms?: TextEnvelope
  /** Of a push message alone. */
  push?: PushEnvelope
  /** Only of a message that was submitted as bytes: then its attachments are parts of those. */
  submitted?: SubmittedEnvelope
  template?: { id: string; name: string; version: number }
  /** The category whose unsubscriptions count. */
  category?: string
  /** What was decided of its recipient when it was accepted; absent where nothing was asked. */
  decision?: EnvelopeDecision
  track?: TrackedParts | undefined
  /** Copies to suppressed addresses: they are no recipients. */
  left_out?: LeftOut[]
  /** The token of the link with which its recipient unsubscribes. */
  unsubscribe?: string
  /** The key of the topic that it was published to: what the token ends. */
  topic?: string
  ignores_preferences?: true
  /** How long its code or link works, from when it was accepted: later it does not leave. */
  lasts_seconds?: number
  /** The one configured provider that may deliver it: it was released to that one. */
  released_to?: string
}

export interface TextEnvelope {
  encoding: "gsm7" | "ucs2"
  /** The request named the sender, so that no provider puts its own in that place. */
  from_given?: true
  /** Of a text that came in: the message that it answers. */
  in_reply_to?: string | null
  /** Of a text that came in, which no quota counts. */
  segments?: number
}

export interface PushEnvelope {
  /** The id of the device's record, which may be gone by now. */
  device: string
  provider: "apns" | "fcm" | "webpush"
  /** The request gave it: what nobody acknowledged by then is expired. */
  ttl_seconds?: number
}

/** The name of the provider that alone can deliver the message; undefined where any of its channel may. */
export const serviceOf = ({ envelope }: { envelope: Envelope | null }) => envelope?.push?.provider

/** By which row of the decision a message may go out, or not (`subscribers/decision.ts`). */
export interface EnvelopeDecision {
  row: number
  reason: string | null
  /** The end of the quiet hours that it waits for. */
  deferred_until: string | null
}

/** As in the recipients of the message. */
export interface LeftOut {
  email: string
  name: string | null
  kind: "to" | "cc" | "bcc"
  text: string
}

interface TrackedParts {
  opens: boolean
  clicks: boolean
  /** Where pixel and links lead, if not to the address of this instance. */
  host?: string
}

interface SubmittedEnvelope {
  size: number
  /** The blob that holds the bytes; null where the content holds them. */
  sha256: string | null
  /** The header cannot be sent without SMTPUTF8 (RFC 6531). */
  wide: boolean
}
