import ipaddr from "ipaddr.js"
import { isAddress, isWithin } from "../lib/ip-ranges"

/**
 * The caller's address. `X-Forwarded-For` counts only from a trusted proxy: then the right-most
 * address that is not one of them. An IPv4-mapped address is told in its IPv4 form.
 */
export function clientAddress(peer: string, headers: Headers, trusted: string[]): string {
  const direct = plain(peer)
  if (trusted.length === 0 || !isWithin(direct, trusted)) return direct
  const hops = (headers.get("x-forwarded-for") ?? "").split(",").map((hop) => hop.trim())
  for (const hop of hops.reverse()) {
    if (!isAddress(hop)) return direct
    if (!isWithin(hop, trusted)) return plain(hop)
  }
  return direct
}

const plain = (address: string) =>
  address.startsWith("::ffff:") && ipaddr.isValid(address)
    ? ipaddr.process(address).toString()
    : address
