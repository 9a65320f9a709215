import { isIP } from "node:net"
import { hostname } from "node:os"
import type { Settings } from "../core/config"
import { isLiteral } from "../core/destination"
import { bareName } from "../core/dns"
import { publicFields } from "../providers/credentials"
import { refusedReturnPaths } from "../providers/health"
import { ownEmailProvider } from "../providers/own-provider"
import { findDescriptor, type ProviderDescriptor } from "../providers/provider"
import { routing } from "../providers/routing"
import { INSTANCE } from "../providers/tables"
import type { Reader } from "../store/store"
import { organizational } from "./names"
import type { DkimAlgorithm, dkimKeys, domains, RecordChecks, RecordPurpose } from "./tables"

export type DomainRow = typeof domains.$inferSelect
export type KeyRow = typeof dkimKeys.$inferSelect

export type RecordKey = keyof RecordChecks

export interface Expected {
  key: RecordKey
  purpose: RecordPurpose
  type: "TXT" | "MX" | "CNAME"
  host: string
  value: string
  priority: number | null
  required: boolean
  /** Of a DKIM record with a key of ours. */
  dkim: { selector: string; algorithm: DkimAlgorithm; public_key: string } | null
}

/** For how many purposes records are required; the three of a provider that signs are one. */
export const REQUIRED = 4

const MX_PRIORITY = 10

/** Every record of a domain, in the order in which people read them. */
export function expectedRecords(
  row: DomainRow,
  keys: KeyRow[],
  targets: RecordTargets,
): Expected[] {
  const { domain, verification_token, return_path, tracking_subdomain } = row
  const bounce = `${return_path}.${domain}`
  const spf = `v=spf1 ${targets.mechanisms.join(" ")} ~all`
  const receives = row.receiving && targets.receives
  const reports = receives ? domain : organizational(domain) // a receiving domain reads its reports
  const dmarc = `v=DMARC1; p=none; rua=mailto:dmarc@${reports}`
  const mine = `svc-domain-verification=${verification_token}`
  const aliases = targets.keeps_identities ? (row.provider_dkim ?? []) : []
  const ours = keys.filter((key) => isShown(key, targets))
  const required = { required: true }
  const mx = { priority: MX_PRIORITY }
  return [
    record("verification", "TXT", `_svc-verify.${domain}`, mine, required),
    record("spf", "TXT", bounce, spf, required),
    ...aliases.map(({ selector, target }) => {
      const more = { key: `dkim:${selector}`, ...required } as const
      return record("dkim", "CNAME", `${selector}._domainkey.${domain}`, target, more)
    }),
    ...ours.map((key) => dkimRecord(key, domain, aliases.length === 0)),
    record("dmarc", "TXT", `_dmarc.${domain}`, dmarc, required),
    record("return_path", "MX", bounce, targets.host, mx),
    ...(tracking_subdomain
      ? [record("tracking", "CNAME", `${tracking_subdomain}.${domain}`, targets.tracking_host)]
      : []),
    ...(receives ? [record("receiving", "MX", domain, targets.host, mx)] : []),
  ]
}

const record = (
  purpose: RecordPurpose,
  type: Expected["type"],
  host: string,
  value: string,
  more: Partial<Expected> = {},
): Expected => ({
  ...{ key: purpose, purpose, type, host, value },
  ...{ priority: null, required: false, dkim: null, ...more },
})

/** Ed25519 is a choice of the operator's, and what was published before stays in sight. */
const isShown = ({ algorithm }: KeyRow, { ed25519 }: RecordTargets) =>
  algorithm === "rsa" || ed25519

/** With `counts`, no other party signs the mail. */
function dkimRecord(key: KeyRow, domain: string, counts: boolean): Expected {
  const { selector, algorithm, public_key, state } = key
  const is_main = algorithm === "rsa" && state === "active"
  const value = `v=DKIM1; k=${algorithm}; p=${public_key}`
  return record("dkim", "TXT", `${selector}._domainkey.${domain}`, value, {
    key: is_main ? "dkim" : `dkim:${selector}`,
    required: is_main && counts,
    dkim: { selector, algorithm, public_key },
  })
}

/** The hosts and SPF mechanisms of this instance that the records of its domains point to. */
export interface RecordTargets {
  /** Of the MX records, and of `a:` in SPF. */
  host: string
  tracking_host: string
  /** Of SPF, when no project's own provider says otherwise. */
  mechanisms: string[]
  /** Of a project that has this machine deliver itself, where the instance does otherwise. */
  of_direct?: string[]
  /** Those that a project may configure: each has mechanisms of its own. */
  providers: readonly ProviderDescriptor[]
  /** Ed25519 keys are published beside RSA. */
  ed25519: boolean
  /** The provider has to accept a domain, too, and signs for it. */
  keeps_identities: boolean
  /** A server takes mail here, so that a domain may have it. */
  receives: boolean
  /** Hosts of return paths that the relay of the project refuses, with its words. */
  refused?: Record<string, string>
}

/** From the settings. The host is `domains.host`, else that of `base_url`, else the machine's name. */
export function recordTargets(
  settings: Settings,
  providers: readonly ProviderDescriptor[],
): RecordTargets {
  const { base_url } = settings
  const host = settings["domains.host"] ?? (base_url ? new URL(base_url).hostname : hostname())
  const name = bareHost(host)
  const given = settings["domains.spf"]
  const machine = [mechanismFor(name)]
  const { descriptor, credentials } = ownEmailProvider(providers, settings)
  const known = publicFields(descriptor, { ...credentials })
  const own = descriptor.spf?.(known, { machine, of: mechanismFor }) ?? machine
  const mechanisms = given.length > 0 ? given : own
  const of_direct = given.length > 0 ? given : machine
  const tracking_host = bareHost(settings["domains.tracking_host"] ?? host)
  const ed25519 = settings["domains.ed25519"]
  const keeps_identities = descriptor.identity !== undefined
  const spf = { mechanisms, of_direct, providers }
  const receives = settings["smtp.inbound.enabled"]
  return { host: name, tracking_host, ...spf, ed25519, keeps_identities, receives }
}

const mechanismFor = (host: string) => {
  const name = bareHost(host)
  if (!isLiteral(name)) return `a:${name}`
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
  const [first] = await routing(db, "email_provider", project_id)
  if (!first) return targets
  const refused = refusedReturnPaths(first)
  if (first.project_id === INSTANCE) return { ...targets, refused }
  const descriptor = findDescriptor(targets.providers, first.kind, first.provider)
  const { spf } = first.settings
  const names = { machine: targets.of_direct ?? targets.mechanisms, of: mechanismFor }
  const mechanisms = Array.isArray(spf)
    ? spf.filter((one) => typeof one === "string")
    : descriptor?.spf?.(first.settings, names)
  const keeps_identities = descriptor?.identity !== undefined
  return { ...targets, refused, keeps_identities, ...(mechanisms && { mechanisms }) }
}

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
