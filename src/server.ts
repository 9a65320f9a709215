import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Elysia } from "elysia"
import { type AppParts, createApp } from "./app"
import { compose, type Loop, type ServerContext } from "./compose"
import { openBlobs } from "./core/blobs"
import { hostAndPort, type Loaded, type Settings } from "./core/config"
import { type Disk, openDisk } from "./core/disk"
import { onceIdle } from "./core/idle"
import { descriptorLimit } from "./core/libc"
import { log } from "./core/log"
import type { Secrets } from "./core/secrets"
import { openWorkers, type Workers } from "./core/workers"
import { isHostName } from "./domains/expected-records"
import { NO_PUBLIC_ADDRESS } from "./domains/sending-domains"
import { emitted } from "./events/emit"
import { connectionLimits } from "./http/connection-limits"
import { type Listener, listen } from "./http/listener"
import type { ServerHealth } from "./http/server-health"
import type { LinkSessions } from "./identity/page-sessions"
import { keepRunning } from "./jobs/every"
import { shareWakeUps } from "./jobs/work-nodes"
import { wakeUpOf } from "./jobs/work-rows"
import { startMailbox } from "./mailbox/smtp-server"
import { type MessageActivity, watch } from "./messages/status-changes"
import { openAdminSocket } from "./operations/admin"
import { tryRaiseMark } from "./operations/database-mark"
import { claimFolders } from "./operations/folder-owner"
import {
  followCluster,
  openSecretsFor,
  probe,
  requireMasterKey,
  requireSharedBlobs,
} from "./operations/instance"
import { blobsDir } from "./operations/restore/restore-target"
import { startInTurn } from "./operations/start-held"
import {
  type MailHandlers,
  type MailServers,
  mailConnections,
  openMailServers,
} from "./smtp/mail-servers"
import { submissionHandlers } from "./smtp/submission"
import type { BeginMode } from "./store/database-file"
import { BOOT_PATIENCE_MS, explained, openStore } from "./store/open"
import type { Store } from "./store/store"
import { keepPosted } from "./subscribers/postings"
import { keepFilled } from "./suppressions/fill-diagnostics"
import type { SetupToken } from "./tenancy/setup"
import { deliveryWakeUp } from "./webhooks/delivery-rows"
import { ALLOWED_WHILE_HELD } from "./work"

const WORKER_THREADS = 2
/** They give way to the event loop: parsing and composing large mail held up everybody's short requests. */
const WORKER_NICENESS = 5
/** Copying a log takes milliseconds. A thread that is ended meanwhile would leave the file open. */
const COPY_LOG = { deadline_ms: 60_000, whole: true }

export interface Running {
  url: string
  port: number
  /** Ports of the mail servers; null where there is none. */
  smtp: { submission: number | null; inbound: number | null; mailbox: number | null }
  data_dir: string
  store: Store
  secrets: Secrets
  /** Sign-ins of pages by a link. They begin with the key whose rights they give. */
  links: LinkSessions
  /** Until the instance has an owner: what proves that one may become it. */
  setup: SetupToken | undefined
  /** Calls `watcher` with each change of a message's status that is on disk, until the function is called. */
  watch(watcher: (activity: MessageActivity) => void): () => void
  /** Resolves when the storage lost what was written: nothing may be acknowledged any more. */
  failed: Promise<Error>
  /** Reads again what may change beside the settings: the files of the TLS certificate. */
  reload(): void
  /** Takes no more work, lets what runs end (20 s at most), gives the rest back, and closes. */
  stop(): Promise<void>
}

export interface StartOptions {
  loaded: Loaded
  mode: "up" | "serve"
  /** Whether a database may begin where none is; default: in a folder that was never in use. */
  begin?: BeginMode
  /** What is open in the database waits until an operator resumes or drops it. */
  hold?: boolean
  /**
   * Called when everything is open and well, before anything is accepted or delivered. Where it throws,
   * nothing ever was.
   */
  admit?: (() => Promise<void>) | undefined
  /** Called when other processes can find this one, before it accepts. Throws where it must not. */
  requireTurn?: () => void | Promise<void>
}

/** Starts everything in the order of need; `stop` goes back in the reverse order. */
export async function start(options: StartOptions): Promise<Running> {
  const undo: (() => unknown)[] = []
  try {
    const running = await assemble(options, undo)
    const { url, smtp, data_dir } = running
    log.info("started", { url, smtp, mode: options.mode, data_dir })
    return running
  } catch (error) {
    for (const step of undo.reverse()) await step()
    throw explained(options.loaded.values, error)
  }
}

async function assemble(
  { loaded, mode, begin = "if_new", hold = false, admit, requireTurn }: StartOptions,
  undo: (() => unknown)[],
): Promise<Running> {
  const { values: settings } = loaded
  const { data_dir } = settings
  const workers = openWorkers({ size: WORKER_THREADS, niceness: WORKER_NICENESS })
  const storage = await openStorage(settings, begin, workers, undo)
  const { store, secrets, disk } = storage
  undo.push(() => workers.close())
  const holding = { is_asked: hold, runs_on: ALLOWED_WHILE_HELD }
  const endStart = await startInTurn(store, settings, holding)
  undo.push(() => tryRaiseMark(store, data_dir), endStart)
  const mailbox = await startMailbox(settings, { ...storage, mode }, undo)
  const address = { url: settings.base_url }
  const mail: { servers?: MailServers } = {}
  const { parts, loops, ...composed } = await compose({
    ...storage,
    settings,
    mode,
    workers,
    base_url: () => address.url ?? "",
    public_url: () => (mode === "up" ? address.url : settings.base_url) ?? undefined,
    mailbox_port: mailbox?.port ?? null,
    health: { smtp: () => smtpState(mailbox, mail.servers) },
  })
  undo.push(composed.close)
  if (mode === "serve") warnOfHost(parts.domains.targets.host)
  if (mode === "serve" && settings.base_url === null) log.warn(NO_PUBLIC_ADDRESS)

  const setup = await parts.setup.begin()
  const accept = parts.health.holdBack()
  const listener = openListener(createApp(parts) as unknown as Elysia, settings)
  undo.push(() => listener.stop())
  address.url ??= listener.url
  const around = { inbound: composed.inbound, disk }
  const mail_servers = await startMailServers(loaded, mode, parts, around)
  mail.servers = mail_servers
  undo.push(() => mail_servers.close(0))
  if (admit) await requireReady(store, parts.health)
  await admit?.()
  undo.push(openAdminSocket(join(data_dir, "admin.sock"), parts))
  await composed.start(undo)
  await endStart()
  await requireTurn?.()
  accept()
  for (const loop of loops) {
    await loop.start()
    undo.push(() => loop.stop(DRAIN_MILLISECONDS))
  }
  void disk.damaged.then(() => Promise.all(loops.map((loop) => loop.stop(DRAIN_MILLISECONDS))))
  const { read } = store
  const works = [wakeUpOf(read, "messages"), wakeUpOf(read, "jobs"), deliveryWakeUp(read)]
  undo.push(shareWakeUps(store, [...works, emitted(read)]))
  undo.push(keepPosted(store), keepFilled(store), keepRunning(store, composed.recurring))
  // What only the start needed goes: compiled code and the collector's reserve, some 5 MB.
  undo.push(onceIdle(() => Bun.shrink()))

  return {
    url: listener.url,
    port: listener.port,
    smtp: { ...mail_servers.ports, mailbox: mailbox?.port ?? null },
    ...{ data_dir, store, secrets, setup, links: parts.links },
    watch: (watcher) => watch(read, watcher),
    failed: disk.died,
    reload: () => mail_servers.reload(),
    stop: stopper(parts.health, { listener, loops, mail_servers }, undo),
  }
}

/** Throws where a server that has to be admitted could not work. */
async function requireReady(store: Store, health: ServerHealth): Promise<void> {
  await probe(store)
  await health.look()
  const { faults } = health
  if (faults.length > 0) throw new Error(`The server is not ready: ${faults.join(", ")}.`)
}

/** With less free space than twice the floor, mail of strangers is refused, so that it never stops the sending. */
const STRANGERS_FLOORS = 2

/** Every mail server whose handlers exist, as the settings want it. */
function startMailServers(
  { values: settings, explain }: Loaded,
  mode: StartOptions["mode"],
  parts: AppParts,
  { inbound, disk }: { inbound: MailHandlers; disk: Disk },
): Promise<MailServers> {
  const { domains, health } = parts
  const strangers_floor = STRANGERS_FLOORS * settings["storage.min_free_mb"] * 1024 * 1024
  const isTight = () => disk.free_bytes() < strangers_floor
  const host = settings["smtp.host"] ?? domains.targets.host
  return openMailServers({
    settings,
    host,
    handlers: { submission: submissionHandlers({ ...parts, host }), inbound },
    isExplicit: (setting) => explain(setting).source !== "default",
    mode,
    trouble: (kind) => health.trouble ?? (kind === "inbound" && isTight() ? "disk_low" : undefined),
    descriptors: descriptorLimit(),
  })
}

/** Of `/readyz`: first the embedded mailbox, then the mail servers. */
function smtpState(
  mailbox: { isListening(): boolean } | undefined,
  servers: MailServers | undefined,
): string {
  if (mailbox && !mailbox.isListening()) return "not listening"
  return servers?.state() ?? "ok"
}

function warnOfHost(host: string) {
  if (isHostName(host)) return
  log.warn("DNS records of domains name a host that others cannot resolve; set domains.host", {
    host,
  })
}

type Storage = Pick<ServerContext, "store" | "secrets" | "blobs" | "inbound_blobs" | "disk">

async function openStorage(
  settings: Settings,
  begin: BeginMode,
  workers: Workers,
  undo: (() => unknown)[],
): Promise<Storage> {
  const { data_dir } = settings
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  const ear: { hear: (error: unknown) => void } = { hear: () => {} }
  const copyLog = (path: string) => workers.run<void>("copy-log", path, COPY_LOG)
  const onFault = (error: unknown) => ear.hear(error)
  const store = await openStore(settings, {
    onFault,
    copyLog,
    begin,
    patience_ms: BOOT_PATIENCE_MS,
  })
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

  const secrets = await openSecretsFor(store, settings)
  await requireMasterKey(store, secrets)
  await followCluster(store)
  await claimFolders(store, settings)
  const folder = blobsDir(settings)
  const onBlobFault = (error: unknown) => void disk.failed(error)
  const blobs = openBlobs(folder, onBlobFault)
  const inbound_blobs = openBlobs(join(folder, "inbound"), onBlobFault)
  if (settings.database_url) await requireSharedBlobs(store, blobs)
  return { store, secrets, blobs, inbound_blobs, disk }
}

function openListener(app: Elysia, settings: Settings): Listener {
  const { host, port } = hostAndPort(settings["http.listen"])
  const idle_seconds = Math.ceil(settings["http.idle_timeout"] / 1000)
  const trustedProxies = () => settings["http.trusted_proxies"]
  const limits = limitsOf(settings)
  return listen(app, { host, port, idle_seconds, limits, trustedProxies })
}

/** Database, log, threads, files of requests; each delivery has a socket and a file; mail servers. */
function limitsOf(settings: Settings) {
  const descriptors = descriptorLimit()
  const deliveries = 2 * settings["delivery.concurrency"] + settings["webhooks.concurrency"]
  const mail = mailConnections(settings, descriptors)
  const reserve = OWN_DESCRIPTORS + deliveries + mail.submission + mail.inbound
  const { "http.max_connections": most, "http.per_ip": per_address } = settings
  const limits = connectionLimits({ descriptors, reserve, most, per_address })
  if (descriptors < 2 * reserve) log.warn(FEW_DESCRIPTORS, { nofile: descriptors, ...limits })
  return limits
}

const OWN_DESCRIPTORS = 96
const FEW_DESCRIPTORS =
  "The limit of open files (nofile) is low, so the server accepts only a few HTTP connections. Raise the limit."

/** How long running work may take to end at a stop. The rest is released. */
export const DRAIN_MILLISECONDS = 20_000

interface Servers {
  listener: Listener
  loops: Loop[]
  mail_servers: MailServers
}

/** Requests and mails first, then the loops: what they accepted may still be on its way to the relay. */
function stopper(
  health: ServerHealth,
  { listener, loops, mail_servers }: Servers,
  undo: (() => unknown)[],
) {
  let stopped: Promise<void> | undefined
  const stop = async () => {
    const counts = loops.map(({ running }) => running)
    const running_deliveries = counts.pop() ?? 0 // the loop of the webhooks is the last one
    const running_jobs = counts.reduce((sum, running) => sum + running, 0)
    log.info("stopping", { running_jobs, running_deliveries })
    health.drain()
    mail_servers.drain()
    await Promise.all([
      listener.stop(),
      mail_servers.close(DRAIN_MILLISECONDS),
      ...loops.map((loop) => loop.stop(DRAIN_MILLISECONDS)),
    ])
    for (const step of undo.reverse()) await step()
    log.info("stopped")
  }
  return () => {
    stopped ??= stop()
    return stopped
  }
}
