import type { AppParts } from "./app"
import { openAuth } from "./auth/auth-parts"
import { AppCredentials } from "./auth/credentials"
import { templateUses } from "./auth/mail-templates"
import { channelTable, KITS, PROVIDERS, PUBLISH_KITS } from "./channels"
import { composePush, composeSms, openProviders, type ProviderGround } from "./compose-providers"
import { unsubscribeLinksAt } from "./consents/unsubscribe-links"
import type { Blobs } from "./core/blobs"
import type { Settings } from "./core/config"
import type { Disk } from "./core/disk"
import { localPartFor } from "./core/mail-token"
import type { Workers } from "./core/workers"
import { openChecks } from "./domains/check-job"
import { NO_PUBLIC_ADDRESS, publicAddressOf } from "./domains/sending-domains"
import { systemMail } from "./emails/instance-mail"
import type { SendRules } from "./emails/prepare"
import { mailbox } from "./emails/providers/mailbox"
import { MessageWatchers } from "./events/message-watchers"
import { stopOf } from "./fan-out/stopped"
import { RecentTraffic } from "./http/listener"
import { Cursors } from "./http/page"
import { RateLimits } from "./http/rate-limits"
import { ServerHealth, type Vitals } from "./http/server-health"
import { inboundHandlers } from "./inbound/inbound-server"
import { InboxHub } from "./inbox/inbox-hub"
import { InboxTokens } from "./inbox/inbox-tokens"
import { countJobs } from "./jobs/counts"
import type { EveryRow } from "./jobs/every"
import { QueuePauses } from "./jobs/holds"
import { jobRows, jobTable } from "./jobs/jobs"
import { WorkLoop } from "./jobs/loop"
import { type WorkNode, workNode } from "./jobs/work-nodes"
import { INBOX_DOMAIN, isMailbox, MAILBOX_DOMAIN } from "./lib/address"
import { SendBatcher } from "./messages/accept"
import { type Channels, countMessages, messageRows, messageTable } from "./messages/pipeline"
import { watch } from "./messages/status-changes"
import { backupWarnings } from "./operations/backup/backup-state"
import { openBackups } from "./operations/backup/create-backup"
import { invariantWarnings, type NightlyCheck, nightlyCheck } from "./operations/nightly-check"
import { providerWarnings } from "./providers/alerts"
import type { Failover } from "./providers/failover"
import type { ProviderEnvironment } from "./providers/provider"
import { firstProvider } from "./providers/routing"
import { assessAfterTrouble } from "./reputation/evaluate"
import { RequestLog } from "./request-log/request-log"
import type { Store } from "./store/store"
import { TemplateRenderer } from "./templates/template-renderer"
import { firstProject, sessionParts } from "./tenancy/setup"
import { Meter } from "./tenancy/usage"
import { Hits } from "./tracking/hits"
import { countDeliveries, deliveryRows, WEBHOOKS } from "./webhooks/delivery-rows"
import { openWebhooks } from "./webhooks/open-webhooks"
import { jobHandlers, recurringWork } from "./work"

/** Slots for each permit to send: some messages are composed while others are sent. */
const PER_PERMIT = 2

const EMAIL = "email_provider" as const

/** What is open before anything is wired, and what a test opens in its own way. */
export interface ServerContext extends ProviderGround {
  settings: Settings
  workers: Workers
  blobs: Blobs
  /** Of received mail, apart: those files go when no mail names them any more. */
  inbound_blobs: Blobs
  disk: Disk
  base_url: () => string
  /** Of `/readyz`, beside what is wired here. */
  health?: Partial<Vitals>
}

/** What a test puts in the place of what the settings say. */
interface Overrides extends Partial<Pick<AppParts, "domains" | "mail">> {
  rules?: Partial<SendRules>
  providers?: ProviderEnvironment
}

export interface Loop {
  readonly running: number
  readonly progressed_at: number
  start(): Promise<void>
  stop(drain_ms: number): Promise<void>
}

interface Composition {
  parts: AppParts
  /** Not started. The loop of the webhooks is the last one. */
  loops: Loop[]
  /** What the mail server on port 25 asks. */
  inbound: ReturnType<typeof inboundHandlers>
  /** Starts what stands around the loops, and pushes what stops it. */
  start(undo: (() => unknown)[]): Promise<void>
  recurring: EveryRow[]
  close(): Promise<void>
}

/** Wires everything from the settings, for the server and for tests. Nothing listens or works yet. */
export async function compose(
  ground: ServerContext,
  overrides: Overrides = {},
): Promise<Composition> {
  const { settings, store, secrets, workers, blobs, inbound_blobs, disk, base_url } = ground
  const link_base = () => ground.public_url() ?? ""
  const { data_dir, sign_up } = settings
  const traffic = new RecentTraffic()
  const cursors = new Cursors(secrets)
  const alone = settings.database_url === null
  const node = workNode({ store, alone, data_dir, isAsked: () => traffic.isRecent() })
  const pauses = queuePauses(store)
  const email = await composeEmail(ground, overrides, pauses)
  const { open_providers, providers, domains, rules, mail } = email
  const texts = composeSms(ground, open_providers, rules)
  const pushes = composePush(ground, open_providers)
  const { channels, planners } = wireChannels(email, texts, pushes)
  const inbound = { ...ground, link_base, ...inboundParts(ground, domains), rules }
  const backups = openBackups({ settings, secrets })
  const own = { store, secrets, backups, blobs, inbound_blobs, domains, rules, planners }
  const watching = new MessageWatchers(store, (tell) => watch(store.read, tell))
  const auth = openAuth({ ...ground, cursors, rules, watching })
  const work = { ...own, auth, open_providers, inbound }
  const handlers = jobHandlers(work, { mail, link_base })
  pauses.add(Object.keys(handlers))
  const isPaused = () => pauses.holdOf(WEBHOOKS) !== undefined
  const hooks = openWebhooks({ store, secrets, workers, settings, node, isPaused })
  const loops = [...openLoops(ground, { node, pauses }, channels, handlers), hooks.loop]

  const nightly = nightlyCheck(store, disk)
  const watched = { providers: [email.provider, texts.provider, pushes.provider], pauses }
  const health = serverHealth(ground, loops, nightly, watched)
  const hasRoom = () => disk.healthy() && disk.state() === "ok"
  const parts: AppParts = {
    mode: ground.mode,
    ...{ store, secrets, blobs, inbound_blobs, workers, health, traffic },
    meter: new Meter(store),
    template_uses: templateUses,
    requests: new RequestLog({ store, hasRoom }),
    hits: new Hits({ store, secrets, hasRoom }),
    device_fates: pushes.fates,
    watching,
    webhooks: hooks.parts,
    intake: new SendBatcher(store),
    limits: new RateLimits(store.isAlone ? undefined : store),
    cursors,
    backups,
    inbox_tokens: new InboxTokens({ store, secrets, base_url }),
    applications: new AppCredentials(auth),
    inbox_hub: new InboxHub(store),
    ...sessionParts({ store, secrets, data_dir, sign_up, base_url }),
    auth,
    ...{ sms_rules: texts.rules, push_rules: texts.rules, mail, rules, planners, domains },
    ...{ open_providers, providers, disk, queues: pauses },
    link_rules: { allow_private: settings["webhooks.allow_private"] },
    trusted_proxies: () => settings["http.trusted_proxies"],
    base_url,
    link_base,
    body_memory_mb: settings["http.body_memory_mb"],
  }
  return {
    parts,
    loops,
    inbound: inboundHandlers(inbound),
    start: (undo) => startAround({ store, parts, pauses, node, nightly }, undo),
    recurring: recurringWork({ ...parts, ...ground, node, nightly }),
    close: () => closeAll(pushes, texts, email),
  }
}

const wireChannels = (
  email: Awaited<ReturnType<typeof composeEmail>>,
  texts: ReturnType<typeof composeSms>,
  pushes: ReturnType<typeof composePush>,
) => ({
  channels: channelTable(email.channel, { sms: texts.channel, push: pushes.channel }),
  planners: {
    email: PUBLISH_KITS.email.planner(email.rules),
    sms: PUBLISH_KITS.sms.planner(texts.rules),
    push: PUBLISH_KITS.push.planner(texts.rules),
    in_app: PUBLISH_KITS.in_app.planner(texts.rules),
  },
})

async function closeAll(...list: { close(): Promise<void> }[]) {
  for (const one of list) await one.close()
}

interface AroundLoops {
  store: Store
  parts: AppParts
  pauses: QueuePauses
  node: WorkNode
  nightly: NightlyCheck
}

async function startAround(
  { store, parts, pauses, node, nightly }: AroundLoops,
  undo: (() => unknown)[],
): Promise<void> {
  const { meter, requests, hits, device_fates, watching, inbox_hub } = parts
  const behind = [meter, requests, hits, device_fates]
  undo.push(() => Promise.all(behind.map((one) => one.flush())))
  undo.push(watching.start(), inbox_hub.start(), assessAfterTrouble(store), nightly.stop)
  nightly.begin()
  await pauses.load()
  await node.join()
  undo.push(node.leave)
}

type WarningSource = () => Promise<string[]>

const unreachable = (public_url: ServerContext["public_url"]) =>
  public_url() === undefined ? [NO_PUBLIC_ADDRESS] : []

interface Watched {
  providers: Pick<Failover<never>, "monitor">[]
  pauses: QueuePauses
}

function serverHealth(
  { store, settings, disk, health, public_url }: ServerContext,
  loops: Loop[],
  checking: NightlyCheck,
  { providers, pauses }: Watched,
): ServerHealth {
  const warnings: WarningSource[] = [
    () =>
      providerWarnings(
        store.read,
        providers.flatMap(({ monitor }) => monitor.troubles()),
      ),
    () => pauses.warnings(),
  ]
  const degradations = [
    () => invariantWarnings(store.read),
    () => backupWarnings(store.read, settings),
  ]
  const allOf = async (sources: WarningSource[]) =>
    (await Promise.all(sources.map((look) => look()))).flat()
  return new ServerHealth({
    disk,
    progressedAt: () => Math.min(...loops.map(({ progressed_at }) => progressed_at)),
    ask: () => firstProject(store.read),
    warnings: async () => [...(await allOf(warnings)), ...unreachable(public_url)],
    degradations: () => allOf(degradations),
    checking,
    smtp: () => "ok",
    ...health,
  })
}

/** How received mail is checked, and under which names this server has addresses. */
function inboundParts(
  { settings, workers, mode }: ServerContext,
  { net, targets }: AppParts["domains"],
) {
  const { host } = targets
  const hosts = [settings["smtp.host"] ?? host, host].map((name) => name.toLowerCase())
  return {
    hosts: [...new Set(hosts)],
    own_domain: mode === "up" ? INBOX_DOMAIN : undefined,
    verdicts: { workers, dns: net.dns, host },
    enforces_dmarc: () => settings["inbound.enforce_dmarc"],
    bytes_per_hour: () => settings["inbound.mb_per_hour"] * 1024 ** 2,
  }
}

async function composeEmail(ground: ServerContext, overrides: Overrides, queues: QueuePauses) {
  const { settings, mode, store, secrets, workers, mailbox_port } = ground
  const opened = await openProviders(settings, ground, overrides.providers)
  const { provider, open_providers, providers, identityOf } = opened
  // Where projects in the sandbox send to, whichever provider delivers otherwise.
  const sandbox = mailbox_port === null ? undefined : mailbox({ port: mailbox_port })
  const domains = overrides.domains ?? { ...openChecks(store, settings, PROVIDERS), identityOf }
  const { host, receives } = domains.targets
  const takes_mail = receives && isMailbox(`r@${host}`) // not where the host has one label
  const reply_host = takes_mail || mode === "serve" ? host : INBOX_DOMAIN
  const replyAddress = (id: string) => `${localPartFor(secrets, "r", id)}@${reply_host}`
  const renderer = new TemplateRenderer(workers)
  const rules: SendRules = {
    ...sendRules(settings, mode, store),
    templates: { read: store.read, renderer },
    unsubscribe: unsubscribeLinksAt({ secrets, mail_host: takes_mail ? host : null }),
    publicAddress: publicAddressOf(store.read, ground.public_url),
    ...((takes_mail || (receives && mode === "up")) && { replyAddress }),
    ...overrides.rules,
  }
  const { system_from, "delivery.concurrency": concurrency } = settings
  return {
    provider,
    open_providers,
    providers,
    rules,
    domains,
    mail: overrides.mail ?? systemMail(secrets, { system_from, to_mailbox: rules.to_mailbox }),
    channel: { ...ground, provider, sandbox, rules, queues, concurrency },
    async close() {
      await renderer.close()
      await provider.close()
      await sandbox?.close()
    },
  }
}

/** What may be sent from here, by the settings; `up` lets the mailbox take mail for every address. */
function sendRules(
  settings: Settings,
  mode: "up" | "serve",
  store: Store,
): Omit<SendRules, "unsubscribe" | "templates" | "publicAddress"> {
  const to_mailbox = settings["delivery.provider"] === "mailbox"
  return {
    files: { allow_private: settings["attachments.allow_private"] },
    read: store.read,
    providerOf: (project_id) => firstProvider(store.read, EMAIL, project_id),
    sending_domains: new Set(settings.sending_domains.filter((name) => name !== MAILBOX_DOMAIN)),
    to_mailbox,
    mailbox_takes_all: to_mailbox && mode === "up",
    has_mailbox: settings["mailbox.enabled"],
  }
}

/** What an operator may pause: each channel that sends, each kind of job, and the webhooks. */
const queuePauses = (store: Store) =>
  new QueuePauses(store, {
    names: [...Object.keys(KITS), WEBHOOKS],
    tables: [messageRows, deliveryRows, jobRows],
    counts: [countMessages(), countJobs(), countDeliveries],
  })

function openLoops(
  { settings, store }: ServerContext,
  { node, pauses }: { node: WorkNode; pauses: QueuePauses },
  channels: Channels,
  handlers: ReturnType<typeof jobHandlers>,
): Loop[] {
  const { "delivery.concurrency": concurrency, "delivery.lease": lease_ms } = settings
  const shared = { ...node.loop, lease_ms, holdOf: (queue: string) => pauses.holdOf(queue) }
  const messages = messageTable(store, channels, stopOf)
  const jobs = jobTable(handlers)
  const slots = PER_PERMIT * concurrency
  return [
    new WorkLoop({
      ...shared,
      table: messages,
      concurrency: slots,
      most_unsettled: slots, // as many again, whose outcomes wait for the disk
      guard: node.guardFor(messages.rows),
    }),
    new WorkLoop({ ...shared, table: jobs, concurrency, guard: node.guardFor(jobs.rows) }),
  ]
}
