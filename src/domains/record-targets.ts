import { isIP } from "node:net"
import { hostname } from "node:os"
import { and, asc, eq } from "drizzle-orm"
import { isAddress } from "../core/addresses"
import type { Settings } from "../core/config"
import { bareName } from "../core/dns-wire"
import { providerConfigs } from "../providers/tables"
import type { Reader } from "../store/store"

/** The hosts and SPF mechanisms of this instance that the records of its domains point to. */
export interface RecordTargets {
  /** Of the MX records, and of `a:` in SPF. */
  host: string
  tracking_host: string
  /** Of SPF, when no project's own provider says otherwise. */
  mechanisms: string[]
  /** Of a project that has this machine deliver itself, where the instance does otherwise. */
  of_direct?: string[]
  /** Ed25519 keys are published beside RSA. */
  ed25519: boolean
  /** The provider has to accept a domain, too, and signs for it. */
  keeps_identities: boolean
  /** A server takes mail here, so that a domain may have it. */
  receives: boolean
  /** A server answers for tracked links here. */
  tracks: boolean
}

const SES = "include:amazonses.com"

/** Neither server is part of Belfry yet: a record that leads to one would lose mail or links. */
const RUNS = { receives: false, tracks: false }

/** From the settings. The host is `domains.host`, else that of `base_url`, else the machine's name. */
export function recordTargets(settings: Settings): RecordTargets {
  const { base_url } = settings
  const host = settings["domains.host"] ?? (base_url ? new URL(base_url).hostname : hostname())
  const name = bareHost(host)
  const given = settings["domains.spf"]
  const mechanisms = given.length > 0 ? given : [ofProvider(settings, name)]
  const of_direct = given.length > 0 ? given : [mechanismFor(name)]
  const tracking_host = bareHost(settings["domains.tracking_host"] ?? host)
  const ed25519 = settings["domains.ed25519"]
  const keeps_identities = settings["delivery.provider"] === "ses"
  const spf = { mechanisms, of_direct }
  return { host: name, tracking_host, ...spf, ed25519, keeps_identities, ...RUNS }
}

function ofProvider(settings: Settings, host: string): string {
  if (settings["delivery.provider"] === "ses") return SES
  const relay = settings["providers.smtp.host"]
  const is_relay = settings["delivery.provider"] === "smtp" && relay !== null
  return mechanismFor(is_relay ? relay : host)
}

const mechanismFor = (host: string) => {
  const name = bareHost(host)
  if (!isAddress(name)) return `a:${name}`
  return name.includes(":") ? `ip6:${name}` : `ip4:${name}`
}

/** Without what a URL (`[::1]`) or a zone file (`mx.example.com.`) puts around it. */
const bareHost = (host: string) => bareName(host.replace(/^\[|\]$/g, ""))

/** The same, as the provider that delivers for this project first has it. */
export async function targetsOfProject(
  db: Reader,
  project_id: string,
  targets: RecordTargets,
): Promise<RecordTargets> {
  const { project_id: owner, kind, enabled, priority, id } = providerConfigs
  const ours = and(eq(owner, project_id), eq(kind, "email_provider"), eq(enabled, true))
  const rows = db.select().from(providerConfigs).where(ours)
  const [first] = await rows.orderBy(asc(priority), asc(id)).limit(1)
  if (!first) return targets
  const { spf, host } = first.settings
  const here = { ...targets, keeps_identities: first.provider === "ses" }
  if (Array.isArray(spf)) return { ...here, mechanisms: spf.filter(isText) }
  if (first.provider === "ses") return { ...here, mechanisms: [SES] }
  if (first.provider === "direct" && targets.of_direct) {
    return { ...here, mechanisms: targets.of_direct }
  }
  if (first.provider !== "smtp" || !isText(host)) return here
  return { ...here, mechanisms: [mechanismFor(host)] }
}

const isText = (value: unknown): value is string => typeof value === "string"

export const UNUSABLE_TARGET = "host_not_findable"

/** Whether receivers can resolve the name. A single label has a meaning in this network at most. */
export const isHostName = (host: string): boolean => host.includes(".") && isIP(host) === 0

/** Mechanisms that name a host of one label, or this very machine. */
const BLIND_TERM = /^(?:(?:a|mx|include|exists):[^.:]+|ip4:127\..+|ip6:::1)$/

/**
 * Why receivers cannot use the value of a record: the instance does not know its own public name.
 * Null for every other record. Such a record still counts as present, because it is in the zone.
 */
export function unusableTarget(record: { purpose: string; type: string; value: string }) {
  const { purpose, type, value } = record
  if (purpose === "spf") {
    const term = value.split(" ").find((one) => BLIND_TERM.test(one))
    if (term === undefined) return null
    return `Receivers cannot use "${term}". Set domains.host on the server to a host name that they can resolve, or set spf of the provider.`
  }
  if (type === "TXT" || isHostName(value)) return null
  const setting = purpose === "tracking" ? "domains.tracking_host" : "domains.host"
  return `"${value}" is not a host name that others can resolve. Set ${setting} on the server to such a name.`
}
