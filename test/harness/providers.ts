import { PROVIDERS } from "../../src/channels"
import { type Settings, settings } from "../../src/core/config"
import type { Secrets } from "../../src/core/secrets"
import { ProviderPermits } from "../../src/emails/email-context"
import { emailFailover } from "../../src/emails/providers/hand-over"
import {
  type EmailContext,
  type EmailProvider,
  type OutgoingMail,
  smtpSchedule,
} from "../../src/emails/providers/provider"
import { ConcurrencyLimit } from "../../src/emails/smtp/destination-limits"
import { openInstance } from "../../src/providers/health"
import { OpenProviders } from "../../src/providers/open-providers"
import type {
  CallbackNetwork,
  ProviderDescriptor,
  ProviderEnvironment,
} from "../../src/providers/provider"
import type { Store } from "../../src/store/store"

/** Relays of tests live on the loopback, where those of tenants may not. */
export const LOOPBACK = ["127.0.0.0/8"]

export interface ProviderOptions {
  settings?: Partial<Settings>
  allow_private?: readonly string[]
  network?: Partial<CallbackNetwork>
  mailbox_port?: number | null
  /** The instance's own. */
  own?: EmailProvider
  /** In the place of delivery by MX. */
  openDirect?: () => EmailProvider
  table?: readonly ProviderDescriptor[]
}

const noDirect = (): never => {
  throw new Error("nothing is delivered by MX in this test")
}

/** The instance's own provider, which no message should reach unless a test says so. */
export const nobody: EmailProvider = {
  name: "mailbox",
  schedule: () => undefined,
  send: () => Promise.reject(new Error("the instance's own provider was asked")),
  close: async () => {},
}

/** As a descriptor, an open provider. */
const asDescriptor = (
  name: string,
  open: () => EmailProvider,
): ProviderDescriptor<object, unknown, OutgoingMail> => ({
  name,
  channel: "email",
  about: name,
  reports: "",
  credentials: {},
  ...(name === "direct" && { is_shared: true }),
  open,
})

/** What email providers get. */
export const testContext = (options: ProviderOptions = {}): EmailContext => ({
  settings: { ...settings(), "delivery.concurrency": 4, ...options.settings },
  schedule: smtpSchedule(),
  mailbox_port: options.mailbox_port ?? null,
  direct: { policies: { find: noDirect, keep: noDirect } },
})

/** Every provider, as a process of these options has them; without a mailbox and without MX. */
export function testEnvironment(options: ProviderOptions = {}): ProviderEnvironment {
  const { own = nobody, openDirect = noDirect, allow_private = LOOPBACK, network } = options
  const email = testContext(options)
  const table = (options.table ?? PROVIDERS).map((one) =>
    one.name === "direct" ? { ...one, open: openDirect } : one,
  )
  return {
    table,
    contexts: { email, push: { settings: email.settings, allow_private } },
    own: { email: { descriptor: asDescriptor(own.name, () => own), credentials: {} } },
    allow_private,
    network: { allow_private: [], ...network },
  }
}

export const testProviders = (secrets: Secrets, options: ProviderOptions = {}) =>
  new OpenProviders(testEnvironment(options), secrets)

/** As the start of a server does: the instance's own provider has its row. */
export async function openOwn(store: Store, secrets: Secrets, { own }: ProviderEnvironment) {
  if (own.email) await openInstance(store, secrets, "email_provider", own.email)
}

/** Limits what the providers of projects hold of so many deliveries at once. */
export const testPermits = (concurrency = 20) =>
  new ProviderPermits({ limit: new ConcurrencyLimit(concurrency), concurrency })

/** The providers of a process as its channel uses them. */
export const testFailover = (store: Store, providers: OpenProviders, permits = testPermits()) =>
  emailFailover({ store, kind: "email_provider", providers, permits })
