import { isAllowed, isPublic } from "../../core/destination"
import { DnsError, type Mx, type Resolver } from "../../core/dns"
import { Remembered } from "../providers/remembered"

/** As long as the shortest time to live that large providers give their records. */
const KNOWN_MS = 60_000
const MOST_KNOWN = 10_000

/** Of a domain that names more, the best; a message must not wait for twenty time-outs. */
const MOST_HOSTS = 5

/** Why a domain can take no mail, ever: RFC 3463 code, subtype of the bounce, and the words. */
export class Unroutable extends Error {
  override readonly name = "Unroutable"
  readonly enhanced: string
  readonly subtype: "NoEmail" | "PolicyRejected" | "General"

  constructor(enhanced: string, subtype: Unroutable["subtype"], message: string) {
    super(message)
    this.enhanced = enhanced
    this.subtype = subtype
  }
}

/** No server could be asked this time, in words that may be shown. */
export class Unreached extends Error {
  override readonly name = "Unreached"
}

interface MailHosts {
  /** In the order of trying. */
  names: string[]
  /** The domain has no MX record and stands for itself (RFC 5321, 5.1). */
  implicit: boolean
}

export interface MxOptions {
  dns: Pick<Resolver, "mx" | "a" | "aaaa">
  /** Networks that are not public, where mail servers may be all the same. */
  allow_private: readonly string[]
  /** From 0 to below 1, to put hosts of one preference in any order. */
  random?: () => number
}

/** Where the mail of a domain goes. Answers are remembered for a minute, failures are not. */
export class MailRoutes {
  readonly #options: MxOptions
  readonly #hosts = new Remembered<MailHosts>(KNOWN_MS, MOST_KNOWN)
  readonly #addresses = new Remembered<string[]>(KNOWN_MS, MOST_KNOWN)

  constructor(options: MxOptions) {
    this.#options = options
  }

  /**
   * The mail hosts of a domain. Rejects with DnsError while that is not known, with Unroutable where
   * the domain says that it takes no mail (RFC 7505).
   */
  async hostsOf(domain: string): Promise<MailHosts> {
    const { names, implicit } = await this.#hosts.get(domain, () => this.#ask(domain))
    return { names: [...names], implicit }
  }

  /**
   * Addresses of a host that may be connected to, IPv4 first. Rejects with DnsError while they are
   * not known, with Unroutable where there is none, or none that is allowed.
   */
  addressesOf(host: string): Promise<string[]> {
    return this.#addresses.get(host, () => this.#locate(host))
  }

  async #ask(domain: string): Promise<MailHosts> {
    const all = await this.#options.dns.mx(domain)
    if (all.length === 0) return { names: [domain], implicit: true }
    const named = all.filter(({ exchange }) => bare(exchange) !== "")
    if (named.length === 0) {
      const words = `${domain} accepts no mail (null MX, RFC 7505)`
      throw new Unroutable("5.1.10", "NoEmail", words)
    }
    return { names: this.#inOrder(named).slice(0, MOST_HOSTS), implicit: false }
  }

  /** RFC 5321, 5.1: by preference, and by chance among equals. */
  #inOrder(all: Mx[]): string[] {
    const random = this.#options.random ?? Math.random
    const drawn = all.map(({ exchange, priority }) => ({ exchange, priority, lot: random() }))
    drawn.sort((one, other) => one.priority - other.priority || one.lot - other.lot)
    return [...new Set(drawn.map(({ exchange }) => bare(exchange)))]
  }

  async #locate(host: string): Promise<string[]> {
    const { dns, allow_private } = this.#options
    const [a, aaaa] = await Promise.allSettled([dns.a(host), dns.aaaa(host)])
    const found = [a, aaaa].flatMap((one) => (one.status === "fulfilled" ? one.value : []))
    const open = found.filter((one) => isPublic(one) || isAllowed(host, one, allow_private))
    if (open.length > 0) return open
    const failed = [a, aaaa].find((one) => one.status === "rejected")
    if (failed) throw failed.reason
    const [refused] = found
    if (refused === undefined) throw new Unroutable("5.4.4", "General", `${host} has no address`)
    const words = `${host} has the address ${refused}, which is not public. To allow it, add it to delivery.allow_private`
    throw new Unroutable("5.4.4", "PolicyRejected", words)
  }
}

/** The error tells of the route to a domain; any other error is a fault of ours. */
export const isRoutingError = (error: unknown): error is Error =>
  error instanceof Unroutable || error instanceof Unreached || error instanceof DnsError

/** It may work another time. A name that can never be asked for does not. */
export const isTemporary = (error: unknown): boolean =>
  !(error instanceof Unroutable) && !(error instanceof DnsError && !error.transient)

const bare = (name: string) => name.toLowerCase().replace(/\.$/, "")
