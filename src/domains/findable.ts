import { isIP } from "node:net"
import type { Expected } from "./expected"

export const UNFINDABLE = "host_not_findable"

/** Whether others can resolve it: one label alone is a name of this network, or of nobody. */
export const isHostName = (host: string): boolean => host.includes(".") && isIP(host) === 0

/** Mechanisms that name a host of one label, or this very machine. */
const BLIND_TERM = /^(?:(?:a|mx|include|exists):[^.:]+|ip4:127\..+|ip6:::1)$/

/**
 * What is wrong with a record whose value nobody outside can make use of, because the instance was
 * not told its name; null for every other. It is in the zone all the same, so it counts as there.
 */
export function unfindable({ purpose, type, value }: Expected): string | null {
  if (purpose === "spf") {
    const term = value.split(" ").find((one) => BLIND_TERM.test(one))
    if (term === undefined) return null
    return `Receivers cannot use "${term}". Set domains.host on the server to a host name that they can resolve, or set spf of the provider.`
  }
  if (type === "TXT" || isHostName(value)) return null
  const setting = purpose === "tracking" ? "domains.tracking_host" : "domains.host"
  return `"${value}" is not a host name that others can resolve. Set ${setting} on the server to such a name.`
}
