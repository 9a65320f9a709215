import type { Settings } from "./core/config"
import type { Secrets } from "./core/secrets"
import { deferBacklogs, openDirect } from "./emails/open-direct"
import { ProviderPermits } from "./emails/provider-permits"
import { Adapters } from "./emails/providers/adapters"
import { Carriers } from "./emails/providers/choose"
import { openProvider } from "./emails/providers/open"
import { ConcurrencyLimit } from "./emails/smtp/destination-limits"
import type { ProviderPlace } from "./providers/place"
import { sesPlace } from "./providers/ses/api"
import { identityOf } from "./providers/ses/identity"
import { ownAccess, ownSes } from "./providers/ses/own"
import type { Store } from "./store/store"

interface Around {
  store: Store
  secrets: Secrets
  /** Null where the embedded mailbox does not run. */
  mailbox_port: number | null
}

/** Whoever delivers email here: the instance's own provider, and those that projects configure. */
export function openCarriers(settings: Settings, { store, secrets, mailbox_port }: Around) {
  const place = sesPlace(settings)
  const allow_private = settings["providers.allow_private"]
  const is_direct = settings["delivery.provider"] === "direct"
  const own_access = ownAccess(settings)
  const limit = new ConcurrencyLimit(settings["delivery.concurrency"])
  const own = is_direct
    ? openDirect(settings, store, limit)
    : openProvider(settings, { mailbox_port, place })
  const adapters = new Adapters({
    secrets,
    allow_private,
    ses: place,
    mailbox_port,
    max_connections: settings["delivery.concurrency"],
    own,
    max_age_seconds: settings["delivery.retry.max_age"] / 1000,
    // One for the instance and all projects: what it may do to one domain is one limit.
    openDirect: () => (is_direct ? own : openDirect(settings, store, limit)),
  })
  const providers: ProviderPlace = {
    allow_private,
    has_mailbox: mailbox_port !== null,
    sns: { ca: place.ca, allow_private },
    own_ses: own_access ? ownSes(secrets, own_access) : null,
  }
  const permitOptions = {
    limit,
    concurrency: settings["delivery.concurrency"],
    onBacklog: deferBacklogs(store, ({ project_id }) =>
      project_id === undefined ? undefined : { project_id },
    ),
  }
  const identities = { read: store.read, secrets, place, own: own_access }
  return {
    provider: new Carriers({ store, adapters, own, permits: new ProviderPermits(permitOptions) }),
    adapters,
    providers,
    /** What the provider of a project thinks of a domain. */
    identityOf: (project_id: string, domain: string) => identityOf(identities, project_id, domain),
  }
}
