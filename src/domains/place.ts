import { hostname } from "node:os"
import { and, asc, eq } from "drizzle-orm"
import { isAddress } from "../core/addresses"
import type { Settings } from "../core/config"
import { bareName } from "../core/dns-answer"
import { providerConfigs } from "../providers/tables"
import type { Reader } from "../store/store"

/** Where this instance is, as the records of its domains name it. */
export interface Place {
  /** Of the MX records, and of `a:` in SPF. */
  host: string
  tracking_host: string
  /** Of SPF, when no project's own provider says otherwise. */
  mechanisms: string[]
  /** Of a project that has this machine deliver itself, where the instance does otherwise. */
  of_direct?: string[]
  /** Ed25519 keys are published beside RSA. */
  ed25519: boolean
  /** Whoever delivers has to accept a domain, too, and signs for it. */
  keeps_identities: boolean
  /** A server takes mail here, so that a domain may have it. */
  receives: boolean
  /** A server answers for tracked links here. */
  tracks: boolean
}

const SES = "include:amazonses.com"

/** Neither server is part of Belfry yet: a record that leads to one would lose mail or links. */
const RUNS = { receives: false, tracks: false }

/** By the settings; without a host of its own that of `base_url`, else that of the machine. */
export function placeOf(settings: Settings): Place {
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
export async function placeFor(db: Reader, project_id: string, place: Place): Promise<Place> {
  const { project_id: owner, kind, enabled, priority, id } = providerConfigs
  const ours = and(eq(owner, project_id), eq(kind, "email_provider"), eq(enabled, true))
  const rows = db.select().from(providerConfigs).where(ours)
  const [first] = await rows.orderBy(asc(priority), asc(id)).limit(1)
  if (!first) return place
  const { spf, host } = first.settings
  const here = { ...place, keeps_identities: first.provider === "ses" }
  if (Array.isArray(spf)) return { ...here, mechanisms: spf.filter(isText) }
  if (first.provider === "ses") return { ...here, mechanisms: [SES] }
  if (first.provider === "direct" && place.of_direct) {
    return { ...here, mechanisms: place.of_direct }
  }
  if (first.provider !== "smtp" || !isText(host)) return here
  return { ...here, mechanisms: [mechanismFor(host)] }
}

const isText = (value: unknown): value is string => typeof value === "string"
