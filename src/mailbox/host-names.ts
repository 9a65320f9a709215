import { settings } from "../core/config"
import { type AddressPolicy, isAllowed, isOurs, isPublic } from "../core/destination"
import { type Resolver, resolver } from "../core/dns"

type Names = Pick<Resolver, "a" | "aaaa">

/** The names that one check asks for: each once, and it stays known which have no answer. */
export class HostNames implements Names {
  readonly #names: Names
  readonly #answers = new Map<string, Promise<string[]>>()
  readonly #waiting = new Set<string>()
  readonly #addresses = new Map<string, string[]>()

  constructor({ resolver: own }: AddressPolicy) {
    this.#names = own ?? resolver({ servers: settings()["dns.servers"] })
  }

  a = (host: string): Promise<string[]> => this.#ask(host, "a")
  aaaa = (host: string): Promise<string[]> => this.#ask(host, "aaaa")

  /** Whether the name servers still owe an answer for the host. */
  isWaiting = ({ hostname }: URL): boolean =>
    [...this.#waiting].some((question) => question.endsWith(` ${bare(hostname)}`))

  /** Whether the URL leads to a port of this process, at an address that is fit otherwise. */
  isThisServer({ hostname, protocol, port }: URL, allow_private: readonly string[]): boolean {
    const host = bare(hostname)
    const number = Number(port || (protocol === "https:" ? 443 : 80))
    const addresses = this.#addresses.get(host) ?? [host === "localhost" ? "127.0.0.1" : host]
    return addresses.every(
      (address) =>
        isOurs(address, number) && (isPublic(address) || isAllowed(host, address, allow_private)),
    )
  }

  #ask(host: string, kind: "a" | "aaaa"): Promise<string[]> {
    const question = `${kind} ${host}`
    const known = this.#answers.get(question)
    if (known) return known
    this.#waiting.add(question)
    const answer = this.#names[kind](host)
      .then((found) => {
        this.#addresses.set(host, [...(this.#addresses.get(host) ?? []), ...found])
        return found
      })
      .finally(() => this.#waiting.delete(question))
    this.#answers.set(question, answer)
    return answer
  }
}

const bare = (hostname: string) => hostname.replace(/^\[|\]$|\.$/g, "")
