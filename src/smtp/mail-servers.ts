import { type KeptCertificate, openCertificate } from "../core/certificate"
import { hostAndPort, type Settings } from "../core/config"
import { log } from "../core/log"
import { sleep } from "../core/time"
import type { ServerTrouble } from "../http/server-health"
import { MailPort } from "./mail-port"
import { type MailServerCounts, MailServerState } from "./mail-server-state"
import { type MailServerOptions, type SmtpReplyError, smtpRefusal } from "./mail-session"

/** Those that have settings. */
type MailServerKind = Exclude<MailServerOptions["kind"], "mailbox">

export type MailHandlers<Identity = unknown> = Pick<
  MailServerOptions<Identity>,
  "authenticate" | "onSender" | "onRecipient" | "onMail"
>

/** Each server has identities of its own kind. */
interface MailServersOptions<Submitter = unknown, Sender = unknown> {
  settings: Settings
  /** In greetings, and in a certificate of our own. */
  host: string
  /** Without handlers there is no such server. */
  handlers: { submission?: MailHandlers<Submitter>; inbound?: MailHandlers<Sender> }
  isExplicit: (setting: keyof Settings) => boolean
  /** Under `up` a free port takes the place of one that is taken. */
  mode: "up" | "serve"
  /** Why a server takes nothing now. */
  trouble: (kind: MailServerKind) => ServerTrouble | undefined
  /** Files and sockets that this process may have open. */
  descriptors: number
}

export interface MailServers {
  /** Null where a server does not run. */
  ports: Record<MailServerKind, number | null>
  /** For `/readyz`: `ok`, `off: <reason>`, or what is wrong. */
  state(): string
  counts(): Partial<Record<MailServerKind, MailServerCounts>>
  /** Reads the files of the certificate again. */
  reload(): void
  drain(): void
  close(drain_ms: number): Promise<void>
}

/** Of the descriptors of this process, what the connections of one mail server may take. */
const SHARE_OF_DESCRIPTORS = 1 / 8
const FEWEST_CONNECTIONS = 16
const SUBMISSION_BYTES = 15_728_640
const INBOUND_BYTES = 26_214_400
const SUBMISSION_RECIPIENTS = 100

/**
 * Opens the mail servers that are enabled. A port that is taken or refused leaves its server off,
 * unless a setting names it: then it rejects.
 */
export async function openMailServers<Submitter, Sender>(
  given: MailServersOptions<Submitter, Sender>,
): Promise<MailServers> {
  const options = given as unknown as MailServersOptions // handlers get back what they gave
  const { settings, handlers } = options
  const wanted = (["submission", "inbound"] as const).filter(
    (kind) => handlers[kind] !== undefined && settings[`smtp.${kind}.enabled`],
  )
  const servers: Partial<Record<MailServerKind, MailServer>> = {}
  const off: string[] = []
  const certificate = wanted.length > 0 ? openPair(options) : undefined
  const closeAll = async (drain_ms: number) => {
    await Promise.all(Object.values(servers).map((server) => server.close(drain_ms)))
    certificate?.close()
    for (const [kind, server] of Object.entries(servers)) {
      log.info("mail server closed", { server: kind, ...server.counts() })
    }
  }
  let closed: Promise<void> | undefined
  const close = (drain_ms: number) => {
    closed ??= closeAll(drain_ms)
    return closed
  }
  try {
    for (const kind of wanted) {
      const opened = certificate && (await openOne(kind, certificate, options))
      if (typeof opened === "string") off.push(opened)
      else if (opened) servers[kind] = opened
    }
  } catch (error) {
    await close(0)
    throw error
  }
  return {
    ports: {
      submission: servers.submission?.port ?? null,
      inbound: servers.inbound?.port ?? null,
    },
    state() {
      const down = Object.values(servers).some((server) => !server.isListening())
      if (down) return "not listening"
      return off.length > 0 ? `off: ${off.join("; ")}` : "ok"
    },
    counts: () =>
      Object.fromEntries(Object.entries(servers).map(([kind, server]) => [kind, server.counts()])),
    reload: () => certificate?.reload(),
    drain() {
      for (const server of Object.values(servers)) server.drain()
    },
    close,
  }
}

function openPair({ settings, host, mode }: MailServersOptions): KeptCertificate {
  const certificate = openCertificate({
    files: () => ({ cert: settings["tls.cert"], key: settings["tls.key"] }),
    data_dir: settings.data_dir,
    host,
  })
  const { self_signed } = certificate
  // Under `up` the banner says it, and only this machine connects.
  if (self_signed && mode === "serve") log.warn(SELF_SIGNED, { host, ...self_signed })
  return certificate
}

const SELF_SIGNED =
  "The mail servers use a certificate that this server signed itself. Clients that check certificates refuse it. Set tls.cert and tls.key."

/** How many connections a mail server may have: the setting, or less where few files may be open. */
export function mailConnections(
  settings: Settings,
  descriptors: number,
): Record<MailServerKind, number> {
  const share = Math.max(FEWEST_CONNECTIONS, Math.floor(descriptors * SHARE_OF_DESCRIPTORS))
  const most = (kind: MailServerKind) =>
    settings[`smtp.${kind}.enabled`] ? Math.min(settings[`smtp.${kind}.max_connections`], share) : 0
  return { submission: most("submission"), inbound: most("inbound") }
}

/** The server, or why there is none. */
async function openOne(
  kind: MailServerKind,
  certificate: KeptCertificate,
  options: MailServersOptions,
): Promise<MailServer | string> {
  const { settings, isExplicit, mode } = options
  const setting = `smtp.${kind}.listen` as const
  const listen = hostAndPort(settings[setting])
  const wanted = { ...serverOptions(kind, certificate, options), listen }
  try {
    return await openMailServer(wanted)
  } catch (error) {
    // An error of the second port is always one of a setting: it has no default.
    const is_usual = !isExplicit(setting) && portOf(error) === listen.port
    if (!is_usual) throw asListenError(error, listen)
    if (mode === "up") {
      return openMailServer({ ...wanted, listen: { ...listen, port: 0 } })
    }
    const reason = reasonOf(error)
    log.warn(OFF, {
      server: kind,
      listen: settings[setting],
      reason,
      ways: waysTo(kind, listen.port),
    })
    return `${kind} on port ${listen.port}: ${reason}`
  }
}

const OFF = "A mail server is off, because it cannot listen on its port. HTTP is not affected."

/** Each of them is enough. */
const waysTo = (kind: MailServerKind, port: number) => [
  "give the service CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE)",
  `allow the port to every user: sysctl net.ipv4.ip_unprivileged_port_start=${port}`,
  `listen on another port with smtp.${kind}.listen, and redirect port ${port} to it (firewall or systemd-socket-proxyd)`,
]

const portOf = (error: unknown) => (error as { port?: unknown }).port

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: string }
  if (code === "EADDRINUSE") return "another program has the port"
  if (code === "EACCES" || code === "EPERM") return "the user of this process may not take the port"
  return message ?? String(error)
}

/** With the fields by which the command line tells what is wrong with a port. */
function asListenError(error: unknown, { host, port }: { host: string; port: number }): unknown {
  if (!(error instanceof Error) || !("code" in error)) return error
  const own = portOf(error)
  const address = { address: host, port: typeof own === "number" ? own : port }
  return Object.assign(error, { syscall: "listen", ...address })
}

function serverOptions(
  kind: MailServerKind,
  certificate: KeptCertificate,
  { settings, host, handlers, trouble, descriptors }: MailServersOptions,
): Omit<MailServerOptions, "listen"> {
  const { onRecipient, onMail, ...rest } = handlers[kind] as MailHandlers
  const implicit = settings["smtp.submission.implicit_listen"]
  const is_submission = kind === "submission"
  const limits = {
    size: is_submission ? SUBMISSION_BYTES : INBOUND_BYTES,
    recipients: is_submission ? SUBMISSION_RECIPIENTS : settings["smtp.inbound.max_recipients"],
    connections: mailConnections(settings, descriptors)[kind],
    per_address: settings[`smtp.${kind}.per_ip`],
    ...(!is_submission && { per_minute: settings["smtp.inbound.per_minute"] }),
  }
  return {
    kind,
    host,
    certificate,
    limits,
    ...(is_submission && implicit !== null && { implicit: hostAndPort(implicit) }),
    trusted_proxies: () => settings["smtp.trusted_proxies"],
    isReady: () => refusalFor(trouble(kind)),
    onRecipient,
    onMail,
    ...rest,
  }
}

/** What a client hears while the server stops, or while mail could not be stored. */
function refusalFor(trouble: ServerTrouble | undefined): SmtpReplyError | undefined {
  if (trouble === undefined) return undefined
  const reply = (code: number, enhanced: string, message: string) =>
    smtpRefusal(code, enhanced, "service_unavailable", message)
  if (trouble === "draining") return reply(421, "4.3.2", "The server is stopping. Try again later")
  if (trouble === "starting") return reply(421, "4.3.2", "The server starts. Try again later")
  const is_away = trouble === "damaged" || trouble === "away"
  if (is_away) return reply(421, "4.3.0", "The storage is away. Try again later")
  if (trouble === "disk_low") return reply(452, "4.3.1", "The disk of the server is almost full")
  return reply(452, "4.3.1", "The storage cannot be written. Try again later")
}

interface MailServer {
  port: number
  implicit_port: number | null
  isListening(): boolean
  counts(): MailServerCounts
  /** From now on new clients and new commands get 421. Mails that are being received go on. */
  drain(): void
  /** Drains, waits for what runs, and closes every connection after `drain_ms`. */
  close(drain_ms: number): Promise<void>
}

/**
 * Opens a mail server on its port, and on a second one that begins with TLS where it is wanted.
 * Rejects where a port is taken or refused (`EADDRINUSE`, `EACCES`).
 */
export async function openMailServer<Identity>(
  given: MailServerOptions<Identity>,
): Promise<MailServer> {
  const options = given as unknown as MailServerOptions // handlers get back what they gave
  const state = new MailServerState(options)
  const ports = [
    new MailPort(state, options.listen, false),
    ...(options.implicit ? [new MailPort(state, options.implicit, true)] : []),
  ]
  try {
    for (const port of ports) await port.open()
  } catch (error) {
    await Promise.all(ports.map((port) => port.shut()))
    throw error
  }
  const forgetCertificate = options.certificate.onChange(() => {
    for (const port of ports) port.renew(options.certificate.current())
  })
  const looking = setInterval(() => state.look(), state.look_ms)
  looking.unref()
  const [plain, implicit] = ports
  let closed: Promise<void> | undefined
  const close = async (drain_ms: number) => {
    state.drain()
    const gone = Promise.all(ports.map((port) => port.shut()))
    await Promise.race([state.emptied(), sleep(drain_ms)])
    state.destroy()
    await gone
    clearInterval(looking)
    forgetCertificate()
  }
  return {
    port: plain?.port ?? 0,
    implicit_port: implicit?.port ?? null,
    isListening: () => ports.every((port) => port.library.server.listening),
    counts: () => state.counts(),
    drain: () => state.drain(),
    close: (drain_ms) => {
      closed ??= close(drain_ms)
      return closed
    },
  }
}
