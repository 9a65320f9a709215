import type { Secrets } from "../../src/core/secrets"
import { ProviderPermits } from "../../src/emails/provider-permits"
import { type AdapterOptions, Adapters } from "../../src/emails/providers/adapters"
import { ConcurrencyLimit } from "../../src/emails/smtp/destination-limits"
import type { ProviderPlace } from "../../src/providers/place"

/** Relays of tests live on the loopback, where those of tenants may not. */
export const LOOPBACK = ["127.0.0.0/8"]

/** The opened providers of projects; without a mailbox and without delivery by MX. */
export const testAdapters = (secrets: Secrets, options: Partial<AdapterOptions> = {}) =>
  new Adapters({
    secrets,
    allow_private: LOOPBACK,
    ses: { endpoint: null, ca: undefined },
    mailbox_port: null,
    max_connections: 4,
    max_age_seconds: 48 * 3600,
    openDirect: () => {
      throw new Error("nothing is delivered by MX in this test")
    },
    ...options,
  })

/** Limits what the providers of projects hold of so many deliveries at once. */
export const testPermits = (concurrency = 20) =>
  new ProviderPermits({ limit: new ConcurrencyLimit(concurrency), concurrency })

export const PROVIDERS: ProviderPlace = {
  allow_private: LOOPBACK,
  has_mailbox: true,
  sns: { ca: undefined, allow_private: [] },
  own_ses: null,
}
