import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Elysia } from "elysia"
import { followCluster } from "./accounts/cluster"
import { firstProject } from "./accounts/first"
import { demandMasterKey, demandSharedBlobs, probe } from "./accounts/instance"
import { openAdminSocket } from "./admin-socket"
import { createApp } from "./app"
import { channelTable } from "./channels"
import { type Blobs, openBlobs } from "./core/blobs"
import { type Bus, createBus } from "./core/bus"
import { hostAndPort, type Loaded, type Settings } from "./core/config"
import { type Disk, openDisk } from "./core/disk"
import { log } from "./core/log"
import { openSecrets, type Secrets } from "./core/secrets"
import { openWorkers } from "./core/workers"
import { checkParts } from "./domains/parts"
import type { EmailChannelParts } from "./emails/channel"
import { Intake } from "./emails/intake"
import { openSandbox } from "./emails/providers/open"
import { systemMail } from "./emails/system-mail"
import { joinNodes } from "./events/nodes"
import { Health } from "./http/health"
import { type Listener, listen } from "./http/listener"
import { Cursors } from "./http/page"
import { type JobParts, jobTable } from "./jobs"
import { startMailbox } from "./mailbox-start"
import { watch } from "./messages/activity"
import { openCarriers } from "./open-carriers"
import { QueueControl } from "./queue-control/queue-control"
import { sendRules } from "./send-rules"
import { sessionParts } from "./session/parts"
import type { ResetPost } from "./session/password/recovery"
import type { SetupToken } from "./session/setup/setup-token"
import { JobLoop } from "./store/job-loop"
import { openStore } from "./store/open"
import type { Store } from "./store/store"
import { keepTidy } from "./tidy"
import { Meter } from "./usage/meter"

const WORKER_THREADS = 2

/** While one message is on the wire, others are composed or recorded. */
const AHEAD = 4
const DRAIN_MILLISECONDS = 20_000

export interface Running {
  url: string
  port: number
  /** Ports of the mail servers; null where there is none. */
  smtp: { submission: number | null; inbound: number | null; mailbox: number | null }
  data_dir: string
  store: Store
  secrets: Secrets
  /** Until the instance has an owner: what proves that one may become it. */
  setup: SetupToken | undefined
  /** Topic `message`: each change of a message's status, once it is on disk. */
  bus: Bus
  /** Resolves when the storage lost what was written: nothing may be acknowledged any more. */
  failed: Promise<Error>
  /** Takes no more work, lets what runs end (20 s at most), gives the rest back, and closes. */
  stop(): Promise<void>
}

export interface StartOptions {
  loaded: Loaded
  mode: "up" | "serve"
}

/** Starts everything in the order of need; `stop` goes back in the reverse order. */
export async function start({ loaded, mode }: StartOptions): Promise<Running> {
  const settings = loaded.values
  const undo: (() => unknown)[] = []
  try {
    const running = await assemble(settings, mode, undo)
    log.info("started", { url: running.url, mode, data_dir: settings.data_dir })
    return running
  } catch (error) {
    for (const step of undo.reverse()) await step()
    throw error
  }
}

async function assemble(
  settings: Settings,
  mode: StartOptions["mode"],
  undo: (() => unknown)[],
): Promise<Running> {
  const { store, secrets, blobs, disk } = await openStorage(settings, undo)
  const workers = openWorkers({ size: WORKER_THREADS })
  undo.push(() => workers.close())

  const mailbox = await startMailbox(settings, { store, secrets }, undo)
  const mailbox_port = mailbox?.port ?? null
  const carriers = openCarriers(settings, { store, secrets, mailbox_port })
  const { provider, adapters, providers, identityOf } = carriers
  undo.push(() => provider.close())
  const sandbox = openSandbox(mailbox_port)
  undo.push(() => sandbox?.close())

  const rules = sendRules(settings, mode, store)
  const address = { url: settings.base_url }
  const base_url = () => address.url ?? ""
  const mail = systemMail(secrets, {
    system_from: settings.system_from,
    to_mailbox: rules.to_mailbox,
  })
  const domains = { ...checkParts(store, settings), identityOf }
  const kept = { store, secrets, blobs, rules }
  const channel = { ...kept, workers, provider, sandbox }
  const { queues, loop } = openLoop(settings, channel, { domains, adapters, mail, base_url })
  const smtp = () => mailbox?.isListening() ?? true
  const progressedAt = () => loop.progressed_at
  const health = new Health({ disk, progressedAt, smtp, ask: () => firstProject(store.read) })
  const meter = new Meter(store)
  undo.push(meter.start())
  const { data_dir, sign_up } = settings
  const session = sessionParts({ store, secrets, data_dir, sign_up, base_url })
  const parts = {
    store,
    secrets,
    blobs,
    workers,
    health,
    meter,
    ...session,
    mail,
    intake: new Intake(store),
    rules,
    domains,
    queues,
    adapters,
    providers,
    cursors: new Cursors(secrets),
    trusted_proxies: settings["http.trusted_proxies"],
  }
  const setup = await session.setup.begin()
  const listener = openListener(createApp(parts) as unknown as Elysia, settings)
  undo.push(() => listener.stop())
  address.url ??= listener.url
  undo.push(openAdminSocket(join(data_dir, "admin.sock"), { store, secrets, ...session }))
  undo.push(await queues.start())
  await loop.start()
  undo.push(() => loop.stop(DRAIN_MILLISECONDS))
  undo.push(joinNodes(store), keepTidy(store))

  const bus = createBus()
  undo.push(watch((activity) => bus.publish("message", activity)))
  return {
    url: listener.url,
    port: listener.port,
    smtp: { submission: null, inbound: null, mailbox: mailbox?.port ?? null },
    data_dir: settings.data_dir,
    store,
    secrets,
    setup,
    bus,
    failed: disk.died,
    stop: stopper(health, listener, loop, undo),
  }
}

type Working = Omit<JobParts, keyof EmailChannelParts> & ResetPost

/** Whoever works in the background, and the operator's hand on it. */
function openLoop(
  settings: Settings,
  channel: Omit<EmailChannelParts, "queues" | "concurrency">,
  { mail, base_url, ...working }: Working,
) {
  const { store } = channel
  const concurrency = settings["delivery.concurrency"]
  const queues = new QueueControl(store)
  const channels = channelTable({ ...channel, queues, concurrency })
  const table = jobTable({ ...channel, ...working }, channels, { mail, base_url })
  const loop = new JobLoop({
    store,
    handlers: queues.over(table),
    concurrency: AHEAD * concurrency,
    lease_ms: settings["delivery.lease"],
    alone: settings.database_url === null,
  })
  return { queues, loop }
}

interface Storage {
  store: Store
  secrets: Secrets
  blobs: Blobs
  disk: Disk
}

async function openStorage(settings: Settings, undo: (() => unknown)[]): Promise<Storage> {
  const { data_dir } = settings
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  const ear: { hear: (error: unknown) => void } = { hear: () => {} }
  const store = await openStore(settings, (error) => ear.hear(error))
  undo.push(() => store.close())

  const disk = openDisk({
    dir: data_dir,
    min_free_mb: settings["storage.min_free_mb"],
    ballast_mb: settings["storage.ballast_mb"],
    probe: () => probe(store),
  })
  undo.push(() => disk.close())
  ear.hear = (error) => void disk.failed(error)
  await disk.keepBallast()

  const secrets = openSecrets({ data_dir, master_key: settings["security.master_key"] })
  await demandMasterKey(store, secrets)
  await followCluster(store)
  const folder = settings["storage.blobs.dir"] ?? join(data_dir, "blobs")
  const blobs = openBlobs(folder, (error) => void disk.failed(error))
  if (settings.database_url) await demandSharedBlobs(store, blobs)
  return { store, secrets, blobs, disk }
}

function openListener(app: Elysia, settings: Settings): Listener {
  const { host, port } = hostAndPort(settings["http.listen"])
  const idle_seconds = Math.ceil(settings["http.idle_timeout"] / 1000)
  return listen(app, { host, port, idle_seconds })
}

/** Requests first, then the loop: what they accepted may still be on its way to the relay. */
function stopper(health: Health, listener: Listener, loop: JobLoop, undo: (() => unknown)[]) {
  let stopped: Promise<void> | undefined
  const stop = async () => {
    log.info("stopping", { running_jobs: loop.running })
    health.drain()
    await Promise.all([listener.stop(), loop.stop(DRAIN_MILLISECONDS)])
    for (const step of undo.reverse()) await step()
    log.info("stopped")
  }
  return () => {
    stopped ??= stop()
    return stopped
  }
}
