import {
  awsRegion,
  databaseUrl,
  destinations,
  domains,
  duration,
  durationFrom,
  flag,
  folder,
  hostName,
  type Kind,
  key32,
  listen,
  mailbox,
  nameServers,
  networks,
  oneOf,
  spfMechanisms,
  text,
  webUrl,
  whole,
} from "./config-kinds"
import { PLAN_NAMES, type PlanLimit, planLimits } from "./config-plans"

const SECOND = 1000
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** One setting: what it takes, what it is when nobody says, and what it means in one line. */
export interface Key<V> {
  readonly kind: Kind<NonNullable<V>>
  readonly fallback: V
  readonly about: string
  /** Never printed, whatever its value. */
  readonly secret: boolean
}

const key = <V>(kind: Kind<V>, fallback: V, about: string): Key<V> =>
  ({ kind, fallback, about, secret: false }) as Key<V>

const optional = <V>(kind: Kind<V>, about: string, secret = false): Key<V | null> =>
  ({ kind, fallback: null, about, secret }) as Key<V | null>

/** Every setting there is. `data_dir`'s own default depends on the environment: config-sources. */
export const keys = {
  data_dir: key(folder, "", "Folder of the database, the blobs and the master key."),
  database_url: optional(databaseUrl, "Postgres to use; without it SQLite in data_dir."),
  database_direct_url: optional(
    databaseUrl,
    "The same Postgres past a pooler such as PgBouncer, for notifications and migrations.",
  ),
  base_url: optional(webUrl, "Public address of this instance, for the links in messages."),

  "log.level": key(oneOf("debug", "info", "warn", "error"), "info", "Least level that is logged."),
  "log.format": key(oneOf("auto", "json", "text"), "auto", "auto: text on a terminal, else JSON."),

  "http.listen": key(listen, ":8080", "Address of the HTTP API; port 0 takes a free one."),
  "http.idle_timeout": key(
    durationFrom("1s", "255s"),
    10 * SECOND,
    "A silent HTTP connection is closed after this.",
  ),
  "http.body_memory_mb": key(
    whole(64, 65_536),
    128,
    "Memory for the bodies of all requests together; what does not fit is answered with 503.",
  ),
  "http.max_connections": optional(
    whole(16, 10_000),
    "Maximum HTTP connections; without it as many as the limit of open files allows.",
  ),
  "http.per_ip": optional(
    whole(1, 10_000),
    "Maximum HTTP connections from one address; without it a quarter of all.",
  ),
  "http.trusted_proxies": key(networks, [], "Proxies whose X-Forwarded-For is believed."),

  "delivery.provider": key(
    oneOf("mailbox", "smtp", "direct", "ses"),
    "mailbox",
    "Where email is handed over.",
  ),
  "delivery.concurrency": key(whole(1, 1000), 20, "Messages that are delivered at the same time."),
  "delivery.lease": key(
    durationFrom("5s", "60s"),
    30 * SECOND,
    "A claimed job may be claimed again after this.",
  ),
  "delivery.per_domain": key(whole(1, 100), 5, "Of these at most so many to one domain (direct)."),
  "delivery.mx_port": key(whole(1, 65_535), 25, "Port of the mail servers that MX names (direct)."),
  "delivery.allow_private": key(networks, [], "Networks where a mail server may be (direct)."),
  "delivery.ehlo_name": optional(hostName, "Name given to mail servers; else that of the machine."),
  "delivery.retry.max_age": key(duration, 48 * HOUR, "An email is tried again until this age."),

  "webhooks.timeout": key(
    durationFrom("1s", "60s"),
    30 * SECOND,
    "A webhook's receiver has this long for its answer, from the first packet to the last.",
  ),
  "webhooks.concurrency": key(whole(1, 1000), 200, "Webhook deliveries that run at the same time."),
  "webhooks.breaker.failures": key(
    whole(1, 1000),
    10,
    "An endpoint is disabled after so many failed attempts in a row.",
  ),
  "webhooks.require_https": key(flag, true, "Whether a webhook's URL must begin with https://."),
  "attachments.allow_private": key(
    destinations,
    [],
    "Networks, addresses and host names that attachments may be fetched from though they are private.",
  ),
  "webhooks.allow_private": key(
    destinations,
    [],
    "Networks, addresses and host names that webhooks may reach though they are private.",
  ),

  "retention.deliveries": key(
    durationFrom("1h", "3650d"),
    30 * DAY,
    "Webhook deliveries are kept.",
  ),
  "retention.events": key(
    durationFrom("1h", "3650d"),
    30 * DAY,
    "Events are kept this long, and never shorter than their deliveries.",
  ),
  "retention.request_log": key(durationFrom("1h", "3650d"), 7 * DAY, "The request log is kept."),

  "providers.smtp.host": optional(hostName, "Mail relay for delivery.provider smtp."),
  "providers.smtp.port": key(whole(1, 65_535), 587, "Port of the mail relay."),
  "providers.smtp.username": optional(text, "User name at the mail relay."),
  "providers.smtp.password": optional(text, "Password at the mail relay.", true),
  "providers.smtp.tls": key(
    oneOf("starttls", "implicit", "none"),
    "starttls",
    "TLS to the mail relay: STARTTLS is demanded, from the first byte, or none.",
  ),

  "providers.allow_private": key(networks, [], "Networks where a project's own relay may be."),
  "providers.ses.region": optional(awsRegion, "Region of SES for delivery.provider ses."),
  "providers.ses.access_key_id": optional(text, "Access key of the IAM user for SES.", true),
  "providers.ses.secret_access_key": optional(text, "Its secret.", true),
  "providers.ses.configuration_set": optional(text, "Whose events come back from SES."),
  "providers.ses.endpoint": optional(webUrl, "Address of the SES API; else that of its region."),
  "providers.ses.ca": optional(folder, "PEM file: who certifies AWS, instead of the well-known."),

  sign_up: key(oneOf("closed", "invite", "open"), "invite", "Who may become a console user."),
  system_from: optional(mailbox, "Sender of the instance's own mail: invitations, resets, alerts."),

  "plans.default": key(oneOf(...PLAN_NAMES), "enterprise", "Plan of a new account."),
  ...planLimits((kind, about) => optional<PlanLimit>(kind, about)),

  sending_domains: key(domains, [], "Domains that count as verified on the operator's word."),

  "mailbox.enabled": key(flag, true, "Whether the embedded mailbox (mailbox.test) runs."),
  "mailbox.listen": key(listen, "127.0.0.1:1025", "SMTP address of the embedded mailbox."),

  "domains.host": optional(
    hostName,
    "Host that MX and SPF records name; else that of base_url, else the machine's own name.",
  ),
  "domains.tracking_host": optional(hostName, "Target of tracking CNAMEs; else domains.host."),
  "domains.spf": key(
    spfMechanisms,
    [],
    "Mechanisms for SPF (ip4:192.0.2.7); without any, those of the provider.",
  ),
  "domains.ed25519": key(flag, false, "Ed25519 DKIM keys are published beside RSA."),

  "dns.servers": key(nameServers, [], "Name servers; without any, those of /etc/resolv.conf."),

  "storage.sqlite.path": optional(folder, "SQLite file; without it belfry.db in data_dir."),
  "storage.cache_mb": key(whole(1, 65_536), 64, "Page cache of each SQLite connection."),
  "storage.ballast_mb": key(whole(0, 65_536), 64, "File dropped when the disk is full; 0: none."),
  "storage.min_free_mb": key(whole(0, 10_000_000), 512, "No sends below this free space; 0: off."),
  "storage.blobs.dir": optional(folder, "Folder of attachments; without it blobs in data_dir."),
  "storage.wal_autocheckpoint": key(whole(0, 1_000_000), 1000, "SQLite's pages; 0: Litestream."),

  "security.master_key": optional(
    key32,
    "Seals secrets at rest; else master.key in data_dir.",
    true,
  ),
} as const

export type KeyName = keyof typeof keys

type ValueOf<K> = K extends Key<infer V> ? V : never

export type Settings = { [K in KeyName]: ValueOf<(typeof keys)[K]> }

export const keyNames = Object.keys(keys) as KeyName[]

/** `log.level` → `BELFRY_LOG_LEVEL`; the urls of the database keep the names that hosts give them. */
export const variableOf = (name: KeyName): string =>
  name.startsWith("database_")
    ? name.toUpperCase()
    : `BELFRY_${name.toUpperCase().replaceAll(".", "_")}`
