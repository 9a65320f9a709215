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
import { Intake } from "./emails/intake"
import { MAILBOX_DOMAIN, type SendRules } from "./emails/prepare"
import { openProvider, openSandbox } from "./emails/providers/open"
import { systemMail } from "./emails/system-mail"
import { joinNodes } from "./events/nodes"
import { Health } from "./http/health"
import * as idempotency from "./http/idempotency"
import { type Listener, listen } from "./http/listener"
import { Cursors } from "./http/page"
import { purgeWindows } from "./http/shared-windows"
import { jobTable } from "./jobs"
import { plan } from "./mailbox/complain"
import { type MailboxServer, openMailbox } from "./mailbox/server"
import { watch } from "./messages/activity"
import { sessionParts } from "./session/parts"
import type { SetupToken } from "./session/setup/setup-token"
import { purgeSessions } from "./session/tidy"
import { JobLoop } from "./store/job-loop"
import { openStore } from "./store/open"
import { purgeDead } from "./store/queue"
import type { Store } from "./store/store"
import { Meter } from "./usage/meter"

const WORKER_THREADS = 2
const DRAIN_MILLISECONDS = 20_000
const PURGE_MILLISECONDS = 60_000

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

  const mailbox = await startMailbox(settings, store, undo)
  const provider = openProvider(settings, mailbox?.port ?? null)
  undo.push(() => provider.close())
  const sandbox = openSandbox(mailbox?.port ?? null)
  undo.push(() => sandbox?.close())

  const rules = rulesOf(settings, mode)
  const address = { url: settings.base_url }
  const base_url = () => address.url ?? ""
  const mail = systemMail({ system_from: settings.system_from, to_mailbox: rules.to_mailbox })
  const channels = channelTable({ store, workers, blobs, provider, sandbox })
  const loop = new JobLoop({
    store,
    handlers: jobTable(store, channels, { mail, base_url }),
    concurrency: settings["delivery.concurrency"],
    lease_ms: settings["delivery.lease"],
    alone: settings.database_url === null,
  })
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
    cursors: new Cursors(secrets),
    trusted_proxies: settings["http.trusted_proxies"],
  }
  const setup = await session.setup.begin()
  const listener = openListener(createApp(parts) as unknown as Elysia, settings)
  undo.push(() => listener.stop())
  address.url ??= listener.url
  undo.push(openAdminSocket(join(data_dir, "admin.sock"), { store, ...session }))
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

async function startMailbox(settings: Settings, store: Store, undo: (() => unknown)[]) {
  if (!settings["mailbox.enabled"]) return undefined
  let fallback: string | undefined
  const server: MailboxServer = await openMailbox({
    store,
    listen: hostAndPort(settings["mailbox.listen"]),
    fallback_project: async () => {
      fallback ??= (await firstProject(store.read))[0]?.project_id // there may be none yet
      return fallback
    },
    complained: (message_id) => plan(store, message_id),
  })
  undo.push(() => server.close())
  return server
}

function rulesOf(settings: Settings, mode: StartOptions["mode"]): SendRules {
  const to_mailbox = settings["delivery.provider"] === "mailbox"
  return {
    sending_domains: new Set(settings.sending_domains.filter((name) => name !== MAILBOX_DOMAIN)),
    to_mailbox,
    mailbox_takes_all: to_mailbox && mode === "up",
    has_mailbox: settings["mailbox.enabled"],
  }
}

function openListener(app: Elysia, settings: Settings): Listener {
  const { host, port } = hostAndPort(settings["http.listen"])
  const idle_seconds = Math.ceil(settings["http.idle_timeout"] / 1000)
  return listen(app, { host, port, idle_seconds })
}

/** Forgets what is past its time, a little at a time. */
function keepTidy(store: Store): () => void {
  const purge = async () => {
    while ((await idempotency.purge(store)) > 0);
    while ((await purgeDead(store)) > 0);
    while ((await purgeSessions(store)) > 0);
    await purgeWindows(store)
  }
  const run = () =>
    void purge().catch((error) => log.warn("old rows could not be removed", { error }))
  const timer = setInterval(run, PURGE_MILLISECONDS)
  return () => clearInterval(timer)
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
