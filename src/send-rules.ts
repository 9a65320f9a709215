import type { Settings } from "./core/config"
import { senderDomains } from "./domains/sending-domains"
import { MAILBOX_DOMAIN, type SendRules } from "./emails/prepare"
import { firstProvider } from "./providers/routing"
import type { Store } from "./store/store"

/** What may be sent from here, by the settings; `up` lets the mailbox take mail for everybody. */
export function sendRules(settings: Settings, mode: "up" | "serve", store: Store): SendRules {
  const to_mailbox = settings["delivery.provider"] === "mailbox"
  return {
    files: { allow_private: settings["attachments.allow_private"] },
    domains: senderDomains(store.read),
    providerOf: (project_id) => firstProvider(store.read, "email_provider", project_id),
    sending_domains: new Set(settings.sending_domains.filter((name) => name !== MAILBOX_DOMAIN)),
    to_mailbox,
    mailbox_takes_all: to_mailbox && mode === "up",
    has_mailbox: settings["mailbox.enabled"],
  }
}
