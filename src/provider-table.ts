import { directProvider } from "./emails/providers/direct"
import { mailboxProvider } from "./emails/providers/mailbox"
import { sesProvider } from "./emails/providers/ses"
import { smtpProvider } from "./emails/providers/smtp"
import type { ProviderDescriptor } from "./providers/descriptor"

/** Every provider there is, of any channel: one row each. */
export const PROVIDERS: readonly ProviderDescriptor[] = [
  mailboxProvider,
  directProvider,
  smtpProvider,
  sesProvider,
]
