import { nearest } from "../lib/text"
import { aiKeys } from "./config-ai"
import { authKeys } from "./config-auth"
import {
  awsRegion,
  backupSchedule,
  databaseUrl,
  destinations,
  domains,
  duration,
  durationFrom,
  flag,
  folder,
  hostName,
  key,
  key32,
  listen,
  mailbox,
  nameServers,
  networks,
  oneOf,
  optional,
  type SettingKey,
  spfMechanisms,
  text,
  webUrl,
  whole,
} from "./config-kinds"
import { relayKeys, reputationKeys, smtpKeys } from "./config-mail"
import { PLAN_NAMES, type PlanLimit, planLimits, routeLimits } from "./config-plans"
import { pushKeys } from "./config-push"
import { smsKeys } from "./config-sms"

const SECOND = 1000
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Every setting there is. `data_dir`'s own default depends on the environment: see config.ts. */
export const keys = {
  data_dir: key(folder, "", "Folder of the database, the attachments and the master key."),
  database_url: optional(
    databaseUrl,
    "URL of the Postgres database. Without it, the data is in an SQLite file in data_dir.",
  ),
  database_direct_url: optional(
    databaseUrl,
    "URL of the same Postgres without the pooler (such as PgBouncer), for notifications and migrations. Without it, database_url is used.",
  ),
  base_url: optional(
    webUrl,
    "Public URL of this instance, for the links in messages. Without it, mail of belfry serve has no links of this server; under belfry up they hold its address on this machine.",
  ),

  "log.level": key(
    oneOf("debug", "info", "warn", "error"),
    "info",
    "Lowest level that is logged: debug, info, warn or error.",
  ),
  "log.format": key(
    oneOf("auto", "json", "text"),
    "auto",
    "Format of the log. auto means text on a terminal and JSON elsewhere.",
  ),

  "http.listen": key(
    listen,
    ":8080",
    "Address and port of the HTTP API. Without a host, it listens on all addresses. Port 0 takes a free port.",
  ),
  "http.idle_timeout": key(
    durationFrom("1s", "255s"),
    10 * SECOND,
    "Time after which a silent HTTP connection is closed.",
  ),
  "http.body_memory_mb": key(
    whole(64, 65_536),
    128,
    "Maximum memory in MB for the bodies of all requests together. A request that does not fit gets 503.",
  ),
  "http.max_connections": optional(
    whole(16, 15_000),
    "Maximum number of HTTP connections. Without it, the limit of open files decides, up to 10,000. Sockets of inboxes count, too.",
  ),
  "http.per_ip": optional(
    whole(1, 10_000),
    "Maximum number of HTTP connections from one address. Without it, the maximum is a quarter of all connections.",
  ),
  "http.trusted_proxies": key(
    networks,
    [],
    "Proxies that may name the client's address in X-Forwarded-For. The header of other clients is ignored.",
  ),

  "delivery.provider": key(
    oneOf("mailbox", "smtp", "direct", "ses"),
    "mailbox",
    "Provider that delivers email: the embedded mailbox, an SMTP relay, the recipients' mail servers (direct) or Amazon SES.",
  ),
  "delivery.concurrency": key(
    whole(1, 1000),
    20,
    "Maximum number of messages that one node delivers at the same time.",
  ),
  "delivery.lease": key(
    durationFrom("5s", "60s"),
    30 * SECOND,
    "Time after which another worker may claim a job, if the worker that claimed it is silent.",
  ),
  "delivery.per_domain": key(
    whole(1, 100),
    5,
    "Maximum concurrent deliveries to one recipient domain, with the provider direct.",
  ),
  "delivery.mx_port": key(
    whole(1, 65_535),
    25,
    "Port of the recipients' mail servers, with the provider direct.",
  ),
  "delivery.allow_private": key(
    networks,
    [],
    "Private networks where recipients' mail servers may be, with the provider direct. Without any, only public addresses are allowed.",
  ),
  "delivery.ehlo_name": optional(
    hostName,
    "Host name that this server gives to mail servers (EHLO), with the provider direct. Without it, the name of the machine is used.",
  ),
  "delivery.retry.max_age": key(
    duration,
    48 * HOUR,
    "Maximum age of an email that is still retried. An older one fails.",
  ),

  "webhooks.timeout": key(
    durationFrom("1s", "60s"),
    30 * SECOND,
    "Maximum time for a webhook receiver's answer, from the first to the last packet.",
  ),
  "webhooks.concurrency": key(
    whole(1, 1000),
    200,
    "Maximum number of webhook deliveries that one node runs at the same time.",
  ),
  "webhooks.breaker.failures": key(
    whole(1, 1000),
    10,
    "Number of failed attempts in a row after which an endpoint is disabled.",
  ),
  "webhooks.require_https": key(
    flag,
    true,
    "Whether the URL of a webhook must begin with https://.",
  ),
  "attachments.allow_private": key(
    destinations,
    [],
    "Private networks, addresses and host names that attachments may be fetched from. Without any, only public addresses are allowed.",
  ),
  "webhooks.allow_private": key(
    destinations,
    [],
    "Private networks, addresses and host names that webhooks may reach. Without any, only public addresses are allowed.",
  ),

  "retention.deliveries": key(
    durationFrom("1h", "3650d"),
    3650 * DAY,
    "Longest time for which a project may keep webhook deliveries (setting `retention`).",
  ),
  "retention.events": key(
    durationFrom("1h", "3650d"),
    3650 * DAY,
    "Longest time for which a project may keep events. They are kept at least as long as their deliveries.",
  ),
  "retention.request_log": key(
    durationFrom("1h", "3650d"),
    7 * DAY,
    "How long the request log is kept.",
  ),
  "retention.audit_log": optional(
    durationFrom("1d", "3650d"),
    "How long the audit log is kept. Without it, the audit log is kept for ever.",
  ),

  ...relayKeys,
  "providers.allow_private": key(
    networks,
    [],
    "Private networks where the relay of a project may be. Without any, only public addresses are allowed.",
  ),
  "providers.ses.region": optional(
    awsRegion,
    "AWS region of SES. Required when delivery.provider is ses.",
  ),
  "providers.ses.access_key_id": optional(
    text,
    "Access key ID of the IAM user for SES. Required when delivery.provider is ses.",
    true,
  ),
  "providers.ses.secret_access_key": optional(
    text,
    "Secret access key of the IAM user for SES. Required when delivery.provider is ses.",
    true,
  ),
  "providers.ses.configuration_set": optional(
    text,
    "SES configuration set that each message names; SES reports events of that set. Without it, messages name none.",
  ),
  "providers.ses.endpoint": optional(
    webUrl,
    "URL of the SES API, such as a VPC endpoint. Without it, the endpoint of the region is used.",
  ),
  "providers.ses.ca": optional(
    folder,
    "PEM file of the certificate authority to trust for SES and SNS. Without it, the well-known authorities are trusted.",
  ),
  ...smsKeys,
  ...pushKeys,
  ...aiKeys,
  ...authKeys,

  sign_up: key(
    oneOf("closed", "invite", "open"),
    "invite",
    "Whether people may become console users: closed (never), invite (with an invitation) or open (everybody).",
  ),
  system_from: optional(
    mailbox,
    "Sender of the instance's own mail (invitations, resets, alerts). Without it, Belfry can send such mail only to the embedded mailbox.",
  ),

  "plans.default": key(oneOf(...PLAN_NAMES), "enterprise", "Plan of a new account."),
  ...planLimits((kind, about) => optional<PlanLimit>(kind, about)),
  ...routeLimits,
  ...reputationKeys,

  sending_domains: key(
    domains,
    [],
    "Domains that may send without DNS records, because the operator trusts them.",
  ),

  "mailbox.enabled": key(flag, true, "Whether the embedded mailbox (mailbox.test) runs."),
  "mailbox.listen": key(
    listen,
    "127.0.0.1:1025",
    "Address and port where the embedded mailbox accepts mail by SMTP.",
  ),

  ...smtpKeys,

  "domains.host": optional(
    hostName,
    "Host name of this instance in MX and SPF records. Without it, the host of base_url, else the name of the machine is used.",
  ),
  "domains.tracking_host": optional(
    hostName,
    "Target of the CNAME records for tracked links. Without it, domains.host is used.",
  ),
  "domains.spf": key(
    spfMechanisms,
    [],
    "SPF mechanisms of the servers that deliver, such as ip4:192.0.2.7. Without any, delivery.provider decides.",
  ),
  "domains.ed25519": key(
    flag,
    false,
    "Whether each domain gets an Ed25519 DKIM key beside its RSA key.",
  ),

  "dns.servers": key(
    nameServers,
    [],
    "Name servers for all DNS look-ups. Without any, those of /etc/resolv.conf are used.",
  ),

  "storage.sqlite.path": optional(
    folder,
    "Path of the SQLite file. Without it, belfry.db in data_dir is used.",
  ),
  "storage.cache_mb": key(
    whole(1, 65_536),
    64,
    "Memory in MB for the page cache of the SQLite connection that reads. The one that writes has a quarter of it.",
  ),
  "upgrade.ready": key(
    durationFrom("1s", "10m"),
    30 * SECOND,
    "Time that a new version has to be ready. After that, `belfry upgrade` brings the old version and its data back.",
  ),
  "upgrade.supervisor": key(
    oneOf("auto", "yes", "no"),
    "auto",
    "Whether another program starts the server again when it ends. auto knows systemd, runit, s6 and supervisord.",
  ),

  "storage.ballast_mb": key(
    whole(0, 65_536),
    64,
    "Size in MB of a reserve file, which is deleted when the disk is full. 0 means no file.",
  ),
  "storage.min_free_mb": key(
    whole(0, 10_000_000),
    512,
    "Minimum free disk space in MB. Below it, new sends are refused with 503. 0 switches the check off.",
  ),
  "storage.blobs.dir": optional(
    folder,
    "Folder of the attachments; all nodes must share it. Without it, blobs in data_dir is used.",
  ),
  "storage.wal_autocheckpoint": key(
    whole(0, 1_000_000),
    1000,
    "Number of pages in SQLite's write-ahead log at which it is copied into the database. 0 leaves this to Litestream.",
  ),

  "backup.schedule": key(
    backupSchedule,
    "daily",
    "When backups are made: off, hourly, daily, weekly, or each day at a time of day in UTC, such as 03:30.",
  ),
  "backup.keep": key(
    whole(1, 1000),
    7,
    "Number of backups that are kept. After each new one, Belfry removes the oldest.",
  ),
  "backup.dir": optional(
    folder,
    "Folder of the backups. Without it, backups in data_dir is used. Nodes that share a database should share it.",
  ),

  "security.master_key": optional(
    key32,
    "Key that encrypts the stored secrets. Without it, the file master.key in data_dir is used.",
    true,
  ),
} as const

export type KeyName = keyof typeof keys

type ValueOf<K> = K extends SettingKey<infer V> ? V : never

export type Settings = { [K in KeyName]: ValueOf<(typeof keys)[K]> } & {
  [of_issuer: `auth.oauth.${string}.endpoint`]: string | null | undefined
}

export const keyNames = Object.keys(keys) as KeyName[]

/** Settings of earlier versions. A machine that still has one starts, and its log says that nothing reads it. */
export const goneNames: readonly string[] = ["upgrade.trial"]

/** `log.level` → `BELFRY_LOG_LEVEL`; the urls of the database keep the names that hosts give them. */
export const variableOf = (name: string): string =>
  name.startsWith("database_")
    ? name.toUpperCase()
    : `BELFRY_${name.toUpperCase().replaceAll(/[.-]/g, "_")}`

const MOST_MEMBERS = 8

/** What a key that does not exist was probably meant to be: `; did you mean log.level?`, or nothing. */
export const guessKey = (name: string): string => guess(name, keyNames, ".")

/** The same for a variable of the environment: the prefix that all have in common counts nothing. */
export function guessVariable(name: string): string {
  const bare = (variable: string) => variable.replace(/^BELFRY_/, "")
  const whole = new Map(keyNames.map(variableOf).map((variable) => [bare(variable), variable]))
  return guess(bare(name), [...whole.keys()], "_", (one) => whole.get(one) ?? one)
}

/** The name with the fewest typing errors away; else the members of the section that is near. */
function guess(
  name: string,
  among: readonly string[],
  separator: string,
  shown = (one: string) => one,
): string {
  const best = nearest(name, among)
  if (best !== undefined) return `; did you mean ${shown(best)}?`

  const sectionOf = (text: string) => text.split(separator, 1)[0] ?? ""
  const in_sections = among.filter((one) => one.includes(separator))
  const section = nearest(sectionOf(name), in_sections.map(sectionOf))
  if (section === undefined) return ""
  const members = in_sections.filter((one) => sectionOf(one) === section)
  return `; did you mean ${members.slice(0, MOST_MEMBERS).map(shown).join(", ")}?`
}
