import type { ProviderDescriptor } from "../../providers/provider"
import { ProviderError } from "../../providers/provider"
import type { EmailContext, EmailProvider, OutgoingMail } from "./provider"
import { mailboxSchedule } from "./provider"
import { relay } from "./smtp"

/** Longer than the 60 s for which a project may delay the answers, and than the 20 s of `slow@`. */
const PATIENCE_MS = 90_000

/** Just below the server's own limit, so that the server never hangs up first. */
const IDLE_MS = 50_000

/** The server takes 100 in all, and others may want some. */
const MOST_CONNECTIONS = 80

interface MailboxAccess {
  port: number
  max_connections?: number
}

/**
 * The embedded mailbox, by the client that every relay gets: what works here works out there. It is
 * the recipient's own server, so what it accepts is delivered.
 */
export const mailbox = ({ port, max_connections = 20 }: MailboxAccess): EmailProvider =>
  relay("mailbox", "delivered", {
    host: "127.0.0.1",
    port,
    tls: "none",
    schedule: mailboxSchedule,
    timeouts: { reply: PATIENCE_MS, accepted: PATIENCE_MS },
    limits: { idle: IDLE_MS, max_connections: Math.min(max_connections, MOST_CONNECTIONS) },
  })

export const mailboxProvider: ProviderDescriptor<object, EmailContext, OutgoingMail> = {
  name: "mailbox",
  channel: "email",
  about: "the embedded mailbox",
  reports: "`delivered` into the embedded mailbox, for every recipient",
  credentials: {},
  banner: () => "the embedded mailbox",
  obstacle: ({ mailbox_port }) =>
    mailbox_port === null ? "The embedded mailbox does not run here." : undefined,
  fromSettings: () => ({}),
  open(_, { settings, mailbox_port }) {
    if (mailbox_port === null) {
      throw new ProviderError("infrastructure", "This instance has no provider mailbox.")
    }
    return mailbox({ port: mailbox_port, max_connections: settings["delivery.concurrency"] })
  },
}
