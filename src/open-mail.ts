import { channelTable } from "./channels"
import type { Blobs } from "./core/blobs"
import type { Settings } from "./core/config"
import { log } from "./core/log"
import type { Secrets } from "./core/secrets"
import type { Workers } from "./core/workers"
import { openChecks } from "./domains/check-job"
import { isHostName } from "./domains/record-targets"
import { systemMail } from "./emails/instance-mail"
import { providerWarnings } from "./emails/provider-warnings"
import { openSandbox } from "./emails/providers/open"
import type { RecentTraffic } from "./http/recent-traffic"
import { JobLoop } from "./jobs/job-loop"
import { QueueControl } from "./jobs/pauses"
import { startMailbox } from "./mailbox/smtp-server"
import { openCarriers } from "./open-carriers"
import { INSTANCE } from "./providers/callback-token"
import { askInstanceNow } from "./providers/instance-standing"
import { sendRules } from "./send-rules"
import type { Store } from "./store/store"
import { countDeliveries, WEBHOOKS } from "./webhooks/delivery-counts"
import { jobTable } from "./work"

/** Jobs in hand for each place on the wire: some are composed, some recorded, while others are sent. */
const AHEAD = 2

export interface MailGround {
  settings: Settings
  mode: "up" | "serve"
  store: Store
  secrets: Secrets
  workers: Workers
  blobs: Blobs
  base_url: () => string
  traffic: RecentTraffic
}

/** The way of mail: embedded mailbox, carriers, channels, and the loop that is to work on them. */
export async function openMail(ground: MailGround, undo: (() => unknown)[]) {
  const { settings, mode, store, secrets, workers, blobs, base_url } = ground
  const mailbox = await startMailbox(settings, { store, secrets }, undo)
  const mailbox_port = mailbox?.port ?? null
  const carriers = openCarriers(settings, { store, secrets, mailbox_port })
  const { provider, adapters, providers, identityOf } = carriers
  undo.push(() => provider.close())
  const sandbox = openSandbox(mailbox_port)
  undo.push(() => sandbox?.close())

  const rules = sendRules(settings, mode, store)
  const { system_from, "delivery.concurrency": concurrency } = settings
  const mail = systemMail(secrets, { system_from, to_mailbox: rules.to_mailbox })
  const queues = new QueueControl(store, { [WEBHOOKS]: countDeliveries })
  const ends = { store, secrets, workers, blobs, provider, sandbox }
  const channels = channelTable({ ...ends, rules, queues, concurrency })
  const domains = { ...openChecks(store, settings), identityOf }
  if (mode === "serve") tellUnfindable(domains.targets.host)
  const work = { store, blobs, domains, rules, adapters }
  const loop = new JobLoop({
    store,
    handlers: queues.over(jobTable(work, channels, { mail, base_url })),
    concurrency: AHEAD * concurrency,
    lease_ms: settings["delivery.lease"],
    alone: settings.database_url === null,
    isAsked: () => ground.traffic.isRecent(),
  })
  await askInstanceNow(store)
  const { standings } = provider
  const findInstanceTrouble = () =>
    standings.troubles().find(({ config_id }) => config_id === INSTANCE)
  const parts = { mail, rules, domains, queues, adapters, providers, findInstanceTrouble }
  const warnings = () => providerWarnings(store.read, standings.troubles())
  return { mailbox, loop, warnings, parts }
}

function tellUnfindable(host: string) {
  if (isHostName(host)) return
  log.warn("DNS records of domains name a host that others cannot resolve; set domains.host", {
    host,
  })
}
