import { isPublic } from "../core/addresses"
import type { Delegation, Resolver } from "../core/dns"
import { bareName } from "../core/dns-answer"
import { type Server, serverOf } from "../core/dns-wire"
import { isSuffix, organizational, upTo } from "./names"

const MOST_SERVERS = 13

/** What is asked where. */
export interface NameServers {
  dns: Resolver
  /** Of the settings: they stand for the resolver and for the authoritative servers alike. */
  servers: readonly string[]
  /** For one try at one server; each is tried twice. */
  try_ms: number
}

export interface Named {
  name: string
  /** Undefined where the server has no address that may be asked; `trouble` says why. */
  server: Server | undefined
  trouble: string
}

/** Why there is nobody to ask: `missing` only where an authority says that there never can be. */
export interface Trouble {
  status: "pending" | "missing"
  mistake: string
  hint: string
}

/** The servers of the zone that a domain is in, or why none are known. */
export async function serversFor(
  net: NameServers,
  domain: string,
): Promise<{ servers: Named[]; trouble: Trouble | null }> {
  if (net.servers.length > 0) {
    const servers = net.servers.map(
      (name): Named => ({ name, server: serverOf(name), trouble: "" }),
    )
    return { servers, trouble: null }
  }
  const zone = organizational(domain)
  let last: Delegation | undefined
  try {
    for (const name of upTo(domain, zone)) {
      last = await net.dns.delegation(name)
      if (last.servers.length > 0) {
        return { servers: await located(net.dns, last.servers), trouble: null }
      }
    }
  } catch (error) {
    return { servers: [], trouble: unknown(messageOf(error)) }
  }
  return { servers: [], trouble: troubleOf(zone, last) }
}

function troubleOf(zone: string, last: Delegation | undefined): Trouble {
  if (last?.alias) {
    const hint = `${zone} itself is an alias (CNAME) of ${last.alias}, which hides its name servers. A CNAME allows no other record beside it. Use an A record or ALIAS instead.`
    return { status: "pending", mistake: "alias_at_apex", hint }
  }
  if (last && isDenied(zone, last)) {
    const above = last.denied_by === "" ? "the root" : last.denied_by
    const hint = `${zone} is not delegated: ${above} knows no name server for it. Check that the domain is registered and paid.`
    return { status: "missing", mistake: "not_delegated", hint }
  }
  return unknown(
    `No name server is known for ${zone}. Check that the domain is registered and delegated.`,
  )
}

const unknown = (hint: string): Trouble => ({ status: "pending", mistake: "unanswered", hint })

/**
 * Whether the zone above says that there is no such zone. Its own servers may be unable to name
 * themselves, and below a private suffix such as `github.io` records may stand without any.
 */
function isDenied(zone: string, { denied_by, is_gone }: Delegation): boolean {
  if (denied_by === null) return false
  const is_above = denied_by === "" || zone.endsWith(`.${denied_by}`)
  return is_above && (is_gone || isSuffix(denied_by))
}

/** No more than a zone needs, so that whoever names thousands makes us ask for none of them. */
export const located = (dns: Resolver, names: string[]): Promise<Named[]> =>
  Promise.all(
    [...new Set(names.map((name) => bareName(name)))]
      .slice(0, MOST_SERVERS)
      .map((name) => locate(dns, name)),
  ).then((all) => all.sort((one, other) => (one.name < other.name ? -1 : 1)))

/** One address of each: IPv4 where there is one, since not every machine has IPv6. */
async function locate(dns: Resolver, name: string): Promise<Named> {
  try {
    const v4 = await dns.a(name)
    const addresses = v4.length > 0 ? v4 : await dns.aaaa(name)
    const address = addresses.find(isPublic)
    if (address) return { name, server: { address, port: 53 }, trouble: "" }
    const [first] = addresses
    const trouble = first ? `its address ${first} is not public` : "it has no address"
    return { name, server: undefined, trouble }
  } catch (error) {
    return { name, server: undefined, trouble: messageOf(error) }
  }
}

export const messageOf = (error: unknown) =>
  error instanceof Error ? error.message : String(error)
