import { type EmailChannelParts, emailChannel } from "./emails/channel"
import { emailContent, emailPlanner } from "./emails/email-planner"
import { directProvider } from "./emails/providers/direct"
import { mailboxProvider } from "./emails/providers/mailbox"
import { sesProvider } from "./emails/providers/ses"
import { smtpProvider } from "./emails/providers/smtp"
import { leave } from "./inbox/inbox"
import { inboxContent, inboxPlanner } from "./inbox/inbox-planner"
import type { InboxRules } from "./inbox/prepare"
import { byChannel } from "./lib/preferences"
import type { Channel } from "./messages/channel"
import { onRemoval } from "./messages/message-retention"
import type { Channels } from "./messages/pipeline"
import type { ChannelPlanner, PublishContent } from "./messages/planner"
import type { ChannelName } from "./messages/tables"
import type { ProviderDescriptor } from "./providers/provider"
import { type PushChannelParts, pushChannel } from "./push/channel"
import type { PushRules } from "./push/prepare"
import { apnsProvider } from "./push/providers/apns"
import { fcmProvider } from "./push/providers/fcm"
import { webpushProvider } from "./push/providers/webpush"
import { pushContent, pushPlanner } from "./push/push-planner"
import { type SmsChannelParts, smsChannel } from "./sms/channel"
import type { SmsRules } from "./sms/prepare"
import { httpProvider } from "./sms/providers/http"
import { logProvider } from "./sms/providers/log"
import { plivoProvider } from "./sms/providers/plivo"
import { twilioProvider } from "./sms/providers/twilio"
import { vonageProvider } from "./sms/providers/vonage"
import { smsContent, smsPlanner } from "./sms/sms-planner"

/** What publishes take from a channel. */
interface PublishKit<Rules> {
  content: PublishContent
  /** How a publish makes messages in it. */
  planner(rules: Rules): ChannelPlanner
}

/** All that the rest of the server takes from a channel that sends, beside its routes. */
interface ChannelKit<Parts, Rules> extends PublishKit<Rules> {
  open(parts: Parts): Channel
  providers: readonly ProviderDescriptor[]
}

const email: ChannelKit<EmailChannelParts, EmailChannelParts["rules"]> = {
  open: emailChannel,
  content: emailContent,
  planner: emailPlanner,
  providers: [mailboxProvider, directProvider, smtpProvider, sesProvider],
}

const sms: ChannelKit<SmsChannelParts, SmsRules> = {
  open: smsChannel,
  content: smsContent,
  planner: smsPlanner,
  providers: [logProvider, twilioProvider, vonageProvider, plivoProvider, httpProvider],
}

const push: ChannelKit<PushChannelParts, PushRules> = {
  open: pushChannel,
  content: pushContent,
  planner: pushPlanner,
  providers: [apnsProvider, fcmProvider, webpushProvider],
}

const in_app: PublishKit<InboxRules> = { content: inboxContent, planner: inboxPlanner }

onRemoval(leave)

/** Every channel that is built and sends. */
export const KITS = { email, sms, push } satisfies Partial<Record<ChannelName, object>>

/** Every channel that is built: of the inbox, nothing is left to send. */
export const PUBLISH_KITS = { email, sms, push, in_app }

/** What delivers the messages of each channel. None can be accepted for one that is not built. */
export const channelTable = (
  email: EmailChannelParts,
  { sms, push }: { sms?: SmsChannelParts; push?: PushChannelParts } = {},
): Channels => ({
  ...byChannel(() => absent),
  email: KITS.email.open(email),
  ...(sms && { sms: KITS.sms.open(sms) }),
  ...(push && { push: KITS.push.open(push) }),
})

const absent: Channel = {
  deliver: async ({ channel }) => {
    throw new Error(`There is no ${channel} channel.`)
  },
}

/** Every provider there is, of any channel. */
export const PROVIDERS: readonly ProviderDescriptor[] = Object.values(KITS).flatMap(
  ({ providers }) => providers,
)
