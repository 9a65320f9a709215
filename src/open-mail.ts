import { channelTable } from "./channels"
import type { Blobs } from "./core/blobs"
import type { Settings } from "./core/config"
import { log } from "./core/log"
import type { Secrets } from "./core/secrets"
import type { Workers } from "./core/workers"
import { openChecks } from "./domains/check-job"
import { isHostName } from "./domains/record-targets"
import { systemMail } from "./emails/instance-mail"
import { mailbox as mailboxProvider } from "./emails/providers/mailbox"
import { type JobRow, jobTable } from "./jobs/jobs"
import { WorkLoop } from "./jobs/loop"
import type { QueuePauses } from "./jobs/pauses"
import type { WorkNode } from "./jobs/work-nodes"
import type { WorkTable } from "./jobs/work-table"
import { startMailbox } from "./mailbox/smtp-server"
import type { Message } from "./messages/facts"
import { messageTable } from "./messages/pipeline"
import type { DeliveryAttempt } from "./messages/settle"
import { openEmailProviders } from "./open-email-providers"
import { PROVIDERS } from "./provider-table"
import { providerWarnings } from "./providers/warnings"
import { sendRules } from "./send-rules"
import type { Store } from "./store/store"
import { jobHandlers } from "./work"

/** Messages in flight for each permit to send: some are composed, some recorded, while others are sent. */
const PER_PERMIT = 2

export interface MailGround {
  settings: Settings
  mode: "up" | "serve"
  store: Store
  secrets: Secrets
  workers: Workers
  blobs: Blobs
  base_url: () => string
  pauses: QueuePauses
  node: WorkNode
}

/** The way of mail: embedded mailbox, providers, channels, and the loop that is to work on them. */
export async function openMail(ground: MailGround, undo: (() => unknown)[]) {
  const { settings, mode, store, secrets, workers, blobs, base_url, pauses } = ground
  const mailbox = await startMailbox(settings, { store, secrets }, undo)
  const mailbox_port = mailbox?.port ?? null
  const opened = await openEmailProviders(settings, { store, secrets, mailbox_port })
  const { provider, open_providers, providers, identityOf } = opened
  undo.push(() => provider.close())
  // Where projects in the sandbox send to, whichever provider delivers otherwise.
  const sandbox = mailbox_port === null ? undefined : mailboxProvider({ port: mailbox_port })
  undo.push(() => sandbox?.close())

  const rules = sendRules(settings, mode, store)
  const { system_from, "delivery.concurrency": concurrency } = settings
  const mail = systemMail(secrets, { system_from, to_mailbox: rules.to_mailbox })
  const ends = { store, secrets, workers, blobs, provider, sandbox }
  const channels = channelTable({ ...ends, rules, queues: pauses, concurrency })
  const domains = { ...openChecks(store, settings, PROVIDERS), identityOf }
  if (mode === "serve") tellUnfindable(domains.targets.host)
  const work = { store, blobs, domains, rules, open_providers }
  const handlers = jobHandlers(work, { mail, base_url })
  pauses.add(Object.keys(handlers))
  const tables = [messageTable(store, channels), jobTable(handlers)] as const
  const loops = openLoops(ground, tables)
  const parts = { mail, rules, domains, queues: pauses, open_providers, providers }
  const warnings = () => providerWarnings(store.read, provider.monitor.troubles())
  return { mailbox, loops, warnings, parts }
}

type Tables = readonly [WorkTable<Message, DeliveryAttempt>, WorkTable<JobRow, never>]

function openLoops({ settings, node, pauses }: MailGround, [messages, jobs]: Tables) {
  const lease_ms = settings["delivery.lease"]
  const holdOf = (queue: string) => pauses.holdOf(queue)
  const shared = { ...node.loop, lease_ms, holdOf }
  const concurrency = settings["delivery.concurrency"]
  return [
    new WorkLoop({
      ...shared,
      table: messages,
      concurrency: PER_PERMIT * concurrency,
      guard: node.guardFor(messages.rows),
    }),
    new WorkLoop({ ...shared, table: jobs, concurrency, guard: node.guardFor(jobs.rows) }),
  ]
}

function tellUnfindable(host: string) {
  if (isHostName(host)) return
  log.warn("DNS records of domains name a host that others cannot resolve; set domains.host", {
    host,
  })
}
