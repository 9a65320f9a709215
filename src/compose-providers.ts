import { PROVIDERS } from "./channels"
import type { Settings } from "./core/config"
import type { Secrets } from "./core/secrets"
import { DeviceFates } from "./devices/device-fates"
import { emailContext, permitsOf } from "./emails/email-context"
import type { SendRules } from "./emails/prepare"
import { emailFailover } from "./emails/providers/hand-over"
import { ConcurrencyLimit } from "./emails/smtp/destination-limits"
import { textSimulator } from "./mailbox/text-simulator"
import { Failover } from "./providers/failover"
import { closeInstance, openInstance } from "./providers/health"
import { emailIdentities, OpenProviders } from "./providers/open-providers"
import { ownEmailProvider, ownProvider } from "./providers/own-provider"
import { channelOf, FAULTS, type ProviderEnvironment } from "./providers/provider"
import type { OutgoingPush, PushContext } from "./push/providers/provider"
import { logProvider } from "./sms/providers/log"
import type { OutgoingText, SmsContext } from "./sms/providers/provider"
import type { Store } from "./store/store"

/** What providers are opened with. */
export interface ProviderGround {
  mode: "up" | "serve"
  store: Store
  secrets: Secrets
  /** Where people outside reach this server; undefined where it does not know. */
  public_url: () => string | undefined
  /** Null where the embedded mailbox does not run. */
  mailbox_port: number | null
}

const EMAIL = "email_provider" as const
const SMS = "sms_provider" as const
const PUSH = "push_provider" as const

/** Texts leave beside email, and have permits of their own: a service that hangs holds no mail. */
export function composeSms(
  ground: ProviderGround & { settings: Settings },
  open_providers: OpenProviders,
  { templates }: Pick<SendRules, "templates">,
) {
  const { settings, store, secrets } = ground
  const concurrency = settings["delivery.concurrency"]
  // Permits prefetch twice as many messages. A text needs no work before it leaves, so half of them is enough.
  const half = Math.max(1, Math.ceil(concurrency / 2))
  const permits = permitsOf(store, "sms", new ConcurrencyLimit(half), half)
  const provider = new Failover<OutgoingText>({
    ...{ store, kind: SMS, providers: open_providers, permits, breaking: FAULTS },
  })
  const opening = { settings: {}, callbackUrl: () => undefined }
  const sandbox = logProvider.open({}, smsContext(settings, ground), opening)
  return {
    provider,
    rules: { read: store.read, templates },
    channel: { store, secrets, provider, sandbox, concurrency },
    close: () => provider.close(),
  }
}

/** Push messages leave beside the others, for the same reason. */
export function composePush(
  ground: ProviderGround & { settings: Settings },
  open_providers: OpenProviders,
) {
  const { settings, store, secrets } = ground
  const concurrency = settings["delivery.concurrency"]
  const half = Math.max(1, Math.ceil(concurrency / 2))
  const permits = permitsOf(store, "push", new ConcurrencyLimit(half), half)
  const provider = new Failover<OutgoingPush>({
    ...{ store, kind: PUSH, providers: open_providers, permits, breaking: FAULTS },
  })
  const fates = new DeviceFates(store)
  return {
    provider,
    fates,
    channel: { store, secrets, provider, fates, concurrency },
    close: () => provider.close(),
  }
}

const pushContext = (settings: Settings): PushContext => ({
  settings,
  allow_private: settings["providers.allow_private"],
})

const smsContext = (
  settings: Settings,
  { store, mailbox_port }: Pick<ProviderGround, "store" | "mailbox_port">,
): SmsContext => ({
  settings,
  allow_private: settings["providers.allow_private"],
  simulator: textSimulator(store, mailbox_port !== null),
})

/** The instance's own providers of email and of texts, and those that projects configure. */
export async function openProviders(
  settings: Settings,
  parts: ProviderGround,
  given?: ProviderEnvironment,
) {
  const { store, secrets, public_url, mode } = parts
  const { context, permits } = emailContext(settings, parts)
  const allow_private = settings["providers.allow_private"]
  const own_sms = settings["sms.provider"] ?? (mode === "up" ? "log" : "none")
  const providers: ProviderEnvironment = given ?? {
    table: PROVIDERS,
    contexts: { email: context, sms: smsContext(settings, parts), push: pushContext(settings) },
    own: {
      email: ownEmailProvider(PROVIDERS, settings),
      ...(own_sms !== "none" && { sms: ownProvider(PROVIDERS, settings, SMS, own_sms) }),
    },
    allow_private,
    network: { allow_private },
    callback_base: public_url,
  }
  const open_providers = new OpenProviders(providers, secrets)
  for (const kind of [EMAIL, SMS]) {
    const own = providers.own[channelOf(kind)]
    await (own ? openInstance(store, secrets, kind, own) : closeInstance(store, kind))
  }
  const failover = { store, kind: EMAIL, providers: open_providers, permits }
  return {
    provider: emailFailover(failover),
    open_providers,
    providers,
    identityOf: emailIdentities(store.read, open_providers),
  }
}
