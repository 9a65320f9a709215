import ai from "../../../docs/ai.md" with { type: "file" }
import auth from "../../../docs/auth.md" with { type: "file" }
import backup from "../../../docs/backup.md" with { type: "file" }
import checkingMail from "../../../docs/checking-mail.md" with { type: "file" }
import consent from "../../../docs/consent.md" with { type: "file" }
import directDelivery from "../../../docs/direct-delivery.md" with { type: "file" }
import domains from "../../../docs/domains.md" with { type: "file" }
import glossary from "../../../docs/glossary.md" with { type: "file" }
import howAMessageTravels from "../../../docs/how-a-message-travels.md" with { type: "file" }
import inbound from "../../../docs/inbound.md" with { type: "file" }
import inbox from "../../../docs/inbox.md" with { type: "file" }
import inboxTokens from "../../../docs/inbox-tokens.md" with { type: "file" }
import mailbox from "../../../docs/mailbox.md" with { type: "file" }
import mcp from "../../../docs/mcp.md" with { type: "file" }
import mfa from "../../../docs/mfa.md" with { type: "file" }
import movingIn from "../../../docs/moving-in.md" with { type: "file" }
import operations from "../../../docs/operations.md" with { type: "file" }
import organizations from "../../../docs/organizations.md" with { type: "file" }
import pages from "../../../docs/pages.md" with { type: "file" }
import preferences from "../../../docs/preferences.md" with { type: "file" }
import providers from "../../../docs/providers.md" with { type: "file" }
import push from "../../../docs/push.md" with { type: "file" }
import reputation from "../../../docs/reputation.md" with { type: "file" }
import resend from "../../../docs/resend.md" with { type: "file" }
import scheduling from "../../../docs/scheduling.md" with { type: "file" }
import sendingToSubscribers from "../../../docs/sending-to-subscribers.md" with { type: "file" }
import sms from "../../../docs/sms.md" with { type: "file" }
import smtp from "../../../docs/smtp.md" with { type: "file" }
import socialSignIn from "../../../docs/social-sign-in.md" with { type: "file" }
import subscribers from "../../../docs/subscribers.md" with { type: "file" }
import suppressions from "../../../docs/suppressions.md" with { type: "file" }
import templates from "../../../docs/templates.md" with { type: "file" }
import topics from "../../../docs/topics.md" with { type: "file" }
import tracking from "../../../docs/tracking.md" with { type: "file" }
import unsubscribe from "../../../docs/unsubscribe.md" with { type: "file" }
import upgrading from "../../../docs/upgrading.md" with { type: "file" }
import webhooks from "../../../docs/webhooks.md" with { type: "file" }

/** A page of `docs/`, as the binary carries it. */
export interface Guide {
  name: string
  /** Its title in the contents, short enough for one line. */
  short: string
  /** Where its Markdown lies: in the sources, or in the binary. */
  file: string
}

/** Every guide, in the order in which a newcomer needs them. */
export const guides: Guide[] = [
  { name: "mailbox", short: "The embedded mailbox", file: mailbox },
  { name: "pages", short: "Signing in to the pages", file: pages },
  { name: "domains", short: "Sending domains", file: domains },
  { name: "templates", short: "Templates", file: templates },
  { name: "ai", short: "AI authoring", file: ai },
  { name: "scheduling", short: "Scheduled sending", file: scheduling },
  { name: "checking-mail", short: "Checking an email", file: checkingMail },
  { name: "tracking", short: "Openings and clicks", file: tracking },
  { name: "resend", short: "The resend client", file: resend },
  { name: "smtp", short: "Sending by SMTP", file: smtp },
  { name: "sms", short: "SMS", file: sms },
  { name: "push", short: "Push", file: push },
  { name: "auth", short: "End users", file: auth },
  { name: "mfa", short: "Second factors", file: mfa },
  { name: "organizations", short: "Organizations", file: organizations },
  { name: "social-sign-in", short: "Social sign-in", file: socialSignIn },
  { name: "webhooks", short: "Webhooks", file: webhooks },
  { name: "inbound", short: "Receiving mail", file: inbound },
  { name: "subscribers", short: "Subscribers", file: subscribers },
  { name: "moving-in", short: "Moving in", file: movingIn },
  { name: "topics", short: "Topics", file: topics },
  { name: "preferences", short: "Preferences", file: preferences },
  { name: "sending-to-subscribers", short: "Sending to subscribers", file: sendingToSubscribers },
  { name: "unsubscribe", short: "Unsubscribing", file: unsubscribe },
  { name: "inbox", short: "The in-app inbox", file: inbox },
  { name: "inbox-tokens", short: "Tokens of subscribers", file: inboxTokens },
  { name: "suppressions", short: "Suppressions", file: suppressions },
  { name: "consent", short: "Consent and erasure", file: consent },
  { name: "mcp", short: "Tools for language models", file: mcp },
  { name: "reputation", short: "Reputation", file: reputation },
  { name: "providers", short: "Providers", file: providers },
  { name: "direct-delivery", short: "Direct delivery", file: directDelivery },
  { name: "operations", short: "Running Belfry", file: operations },
  { name: "backup", short: "Backups", file: backup },
  { name: "upgrading", short: "Upgrading", file: upgrading },
  { name: "how-a-message-travels", short: "How a message travels", file: howAMessageTravels },
  { name: "glossary", short: "Glossary", file: glossary },
]

export const lookupGuide = (name: string): Guide | undefined =>
  guides.find((guide) => guide.name === name)
