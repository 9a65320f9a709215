import { log } from "../core/log"
import type { OpenedKey } from "../domains/signing"
import type { Message } from "../messages/facts"
import { firstProvider } from "../providers/routing"
import type { Store } from "../store/store"
import type { SendRules } from "./prepare"
import type { EmailProvider } from "./providers/provider"

export interface SigningGround {
  store: Store
  /** The instance's own; a project may have another one. */
  provider: Pick<EmailProvider, "name">
  rules: Pick<SendRules, "sending_domains">
}

/** Tells the log of a message that is composed with these keys. */
export type TellUnsigned = (message: Message, keys: OpenedKey[]) => Promise<void>

/**
 * The operator's word lets mail of `sending_domains` out without DNS, and so without a key that signs
 * it. Many receivers call that spam, so the log says it, once for each domain until the next start.
 * What only the embedded mailbox gets leaves for nobody.
 */
export function unsignedWarner({ store, provider, rules }: SigningGround): TellUnsigned {
  const told = new Set<string>()
  return async ({ sender_domain: domain, project_id, sandbox }, keys) => {
    if (keys.length > 0 || sandbox || domain === null || told.has(domain)) return
    if (!rules.sending_domains.has(domain)) return
    const carrier = (await firstProvider(store.read, project_id)) ?? provider.name
    if (carrier === "mailbox" || told.has(domain)) return
    told.add(domain)
    log.warn(UNSIGNED, { domain, next: `belfry domains add ${domain}` })
  }
}

const UNSIGNED =
  "Mail from this domain leaves without a DKIM signature. sending_domains allows the domain, but no verified " +
  "domain has a key for it. Add the domain and its DNS records."
