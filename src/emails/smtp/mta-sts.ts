import type { Resolver } from "../../core/dns"
import { type NetRequest, request } from "../../core/net"
import { now, secondsFromNow } from "../../core/time"
import { Remembered } from "../providers/remembered"
import type { mtaStsPolicies } from "../tables"

/** RFC 8461, 3.2: what a policy may ask for at most, about a year. */
const MOST_SECONDS = 31_557_600
const MOST_BYTES = 64 * 1024
const FETCH_MS = 20_000

/** RFC 8461, 3.3: a failed fetch is not repeated at once. */
const KNOWN_MS = 300_000
const MOST_KNOWN = 10_000

interface Policy extends Pick<KeptPolicy, "mode" | "mx"> {
  max_age_seconds: number
}

export type KeptPolicy = typeof mtaStsPolicies.$inferSelect

/** Where policies stay over a restart, because an attacker may wait for one. */
export interface PolicyStore {
  find(domain: string): Promise<KeptPolicy | undefined>
  keep(policy: KeptPolicy): Promise<void>
}

export interface MtaStsOptions {
  dns: Pick<Resolver, "txt" | "a" | "aaaa">
  policies: PolicyStore
  allow_private: readonly string[]
  /** PEM of the authority to trust instead of the well-known ones. */
  ca?: string | undefined
  /** Of the policy hosts; always 443 outside tests. */
  port?: number | undefined
  /** For how long an answer, also "none", is not asked for again. */
  known_ms?: number | undefined
}

/**
 * The policy that a domain publishes for its senders (RFC 8461), or the one it published
 * before and which is still in force; undefined where there is none. Never rejects for what the
 * network does.
 */
export function mtaSts(
  options: MtaStsOptions,
): (domain: string) => Promise<KeptPolicy | undefined> {
  const known = new Remembered<KeptPolicy | undefined>(options.known_ms ?? KNOWN_MS, MOST_KNOWN)
  return (domain) => known.get(domain, () => current(options, domain))
}

async function current(options: MtaStsOptions, domain: string): Promise<KeptPolicy | undefined> {
  const kept = await options.policies.find(domain)
  const valid = kept && kept.expires_at > now() ? kept : undefined
  const policy_id = await publishedId(options.dns, domain)
  if (policy_id === undefined || policy_id === valid?.policy_id) return valid
  const policy = await fetchPolicy(options, domain)
  if (!policy) return valid
  const { mode, mx, max_age_seconds } = policy
  const expires_at = secondsFromNow(max_age_seconds)
  const fresh = { domain, policy_id, mode, mx, fetched_at: now(), expires_at }
  await options.policies.keep(fresh)
  return fresh
}

/** RFC 8461, 3.1: exactly one record that begins so, or there is no policy. */
async function publishedId(
  dns: Pick<Resolver, "txt">,
  domain: string,
): Promise<string | undefined> {
  try {
    const records = (await dns.txt(`_mta-sts.${domain}`)).map((strings) => strings.join(""))
    const [only, ...others] = records.filter((text) => /^v=STSv1\s*;/.test(text))
    if (only === undefined || others.length > 0) return undefined
    return /;\s*id=([A-Za-z0-9]{1,32})\s*(?:;|$)/.exec(only)?.[1]
  } catch {
    return undefined // not known is not published: what was kept stays in force
  }
}

async function fetchPolicy(options: MtaStsOptions, domain: string): Promise<Policy | undefined> {
  const port = options.port === undefined ? "" : `:${options.port}`
  const wanted: NetRequest = {
    url: `https://mta-sts.${domain}${port}/.well-known/mta-sts.txt`,
    timeout_ms: FETCH_MS,
    capture_bytes: MOST_BYTES,
    allow_private: options.allow_private,
    resolver: options.dns,
    ca: options.ca,
  }
  try {
    const { status, headers, body, truncated } = await request(wanted)
    const is_text = /^text\/plain\s*(?:;|$)/i.test(headers.get("content-type") ?? "")
    if (status !== 200 || truncated || !is_text) return undefined
    return parsePolicy(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}

/** RFC 8461, 3.2. Undefined for what is no policy of this version, or lacks something. */
export function parsePolicy(text: string): Policy | undefined {
  const fields = new Map<string, string>()
  const mx: string[] = []
  for (const line of text.split(/\r?\n/)) {
    const [, name = "", value = ""] = /^([A-Za-z0-9][\w.-]*)\s*:\s*(.*?)\s*$/.exec(line) ?? []
    if (name === "mx") mx.push(value.toLowerCase().replace(/\.$/, ""))
    else if (name !== "" && !fields.has(name)) fields.set(name, value)
  }
  const mode = (["enforce", "testing", "none"] as const).find((one) => one === fields.get("mode"))
  const max_age = fields.get("max_age") ?? ""
  if (fields.get("version") !== "STSv1" || !mode || !/^\d{1,10}$/.test(max_age)) return undefined
  if (mode !== "none" && mx.length === 0) return undefined
  return { mode, mx, max_age_seconds: Math.min(Number(max_age), MOST_SECONDS) }
}

/** RFC 8461, 4.1: the star stands for exactly one label. */
export const isNamed = (host: string, { mx }: Pick<Policy, "mx">): boolean =>
  mx.some((pattern) =>
    pattern.startsWith("*.")
      ? host.slice(host.indexOf(".") + 1) === pattern.slice(2) && host.includes(".")
      : host === pattern,
  )
