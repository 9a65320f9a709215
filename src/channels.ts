import { type EmailChannelParts, emailChannel } from "./emails/channel"
import { directProvider } from "./emails/providers/direct"
import { mailboxProvider } from "./emails/providers/mailbox"
import { sesProvider } from "./emails/providers/ses"
import { smtpProvider } from "./emails/providers/smtp"
import type { Channel } from "./messages/channel"
import type { Channels } from "./messages/pipeline"
import type { ProviderDescriptor } from "./providers/provider"

/** Every channel there is. A message can only be accepted for one that is built. */
export const channelTable = (email: EmailChannelParts): Channels => ({
  email: emailChannel(email),
  push: absent,
  sms: absent,
  in_app: absent,
})

const absent: Channel = {
  deliver: async ({ channel }) => {
    throw new Error(`There is no ${channel} channel.`)
  },
}

/** Every provider there is, of any channel: one row each. */
export const PROVIDERS: readonly ProviderDescriptor[] = [
  mailboxProvider,
  directProvider,
  smtpProvider,
  sesProvider,
]
