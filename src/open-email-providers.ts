import type { Settings } from "./core/config"
import type { Secrets } from "./core/secrets"
import { emailContext } from "./emails/email-context"
import type { OutgoingMail } from "./emails/providers/provider"
import { PROVIDERS } from "./provider-table"
import { ownEmailProvider, type ProviderEnvironment } from "./providers/descriptor"
import { Failover } from "./providers/failover"
import { openInstance } from "./providers/health"
import { emailIdentities, OpenProviders } from "./providers/open-providers"
import type { Store } from "./store/store"

interface Around {
  store: Store
  secrets: Secrets
  /** Null where the embedded mailbox does not run. */
  mailbox_port: number | null
}

const KIND = "email_provider"

/** Whatever delivers email here: the instance's own provider, and those that projects configure. */
export async function openEmailProviders(settings: Settings, around: Around) {
  const { store, secrets } = around
  const { context, permits } = emailContext(settings, around)
  const own = ownEmailProvider(PROVIDERS, settings)
  const allow_private = settings["providers.allow_private"]
  const providers: ProviderEnvironment = {
    table: PROVIDERS,
    contexts: { email: context },
    own: { email: own },
    allow_private,
    network: { allow_private },
  }
  const open_providers = new OpenProviders(providers, secrets)
  await openInstance(store, secrets, KIND, own)
  return {
    provider: new Failover<OutgoingMail>({ store, kind: KIND, providers: open_providers, permits }),
    open_providers,
    providers,
    identityOf: emailIdentities(store.read, open_providers),
  }
}
